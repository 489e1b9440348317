// RUN: morello-opt %s --morello-select-entry=entry=f | FileCheck %s
// RUN: not morello-opt %s --morello-select-entry 2>&1 | FileCheck %s --check-prefix=SEVERAL
// RUN: not morello-opt %s --morello-select-entry=entry=nope 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not morello-opt %s --morello-select-entry=entry=declared 2>&1 | FileCheck %s --check-prefix=BODY

// SEVERAL: error: 'builtin.module' op several functions could be the entry (@f, @helper, @driver)
// UNKNOWN: error: 'builtin.module' op no function @nope to enter
// BODY: error: 'builtin.module' op function @declared is only declared: an entry needs a body

// What the entry reaches stays and becomes private; a driver, its declarations and a nested module go.
// CHECK-NOT: module @nested
// CHECK: memref.global "private" constant @table
// CHECK-NOT: @unused
// CHECK: func.func private @declared
// CHECK-NOT: @print
// CHECK: func.func @f
// CHECK: func.func private @helper
// CHECK-NOT: @driver
module @nested {
  func.func @inner() { return }
}
memref.global constant @table : memref<1xf32> = dense<0.0>
memref.global "private" constant @unused : memref<1xf32> = dense<0.0>
func.func private @declared(f32) -> f32
func.func private @print(memref<*xf32>)
func.func @f(%x: f32) -> f32 {
  %r = call @helper(%x) : (f32) -> f32
  return %r : f32
}
func.func @helper(%x: f32) -> f32 {
  %t = memref.get_global @table : memref<1xf32>
  %g = func.constant @declared : (f32) -> f32
  %r = func.call_indirect %g(%x) : (f32) -> f32
  return %r : f32
}
func.func @driver(%x: memref<*xf32>) {
  call @print(%x) : (memref<*xf32>) -> ()
  return
}

// Rows of tables are read in whole vectors from where a number says, single elements each by itself.
// RUN: morello-opt %s --morello-apply=target=avx512 --split-input-file | FileCheck %s

// CHECK: func.func private @morello_map_5x64_
// CHECK: %[[ID:.*]] = vector.extract %{{.*}}[0] : i64 from vector<1xi64>
// CHECK: arith.index_cast %[[ID]] : i64 to index
// CHECK: vector.load %{{.*}} vector<16xf32>
// CHECK-NOT: vector.gather
func.func @rows(%x: memref<5xi64>, %t: memref<2100xf32>, %y: memref<5x64xf32>) {
  "morello.nest3"(%x, %t, %y) {
    function = "Map", dims = array<i64: 5, 64>, scan = array<i64>,
    operands = ["(i64, GL, [1, 0])", "(f32, GL, [0, 1], axes [64] of [30])", "(f32, GL, [64, 1])"],
    body = "y = gather(x1, x0)", serial, schedule = ["rows vector d1 by 4:", "    pass y"]
  } : (memref<5xi64>, memref<2100xf32>, memref<5x64xf32>) -> ()
  return
}

// -----

// CHECK: func.func private @morello_map_40_
// CHECK: vector.gather %{{.*}} : memref<?xf32, {{.*}}>, vector<16xi64>, vector<16xi1>, vector<16xf32> into vector<16xf32>
// CHECK: vector.gather
func.func @elements(%x: memref<40xi64>, %t: memref<30xf32>, %y: memref<40xf32>) {
  "morello.nest3"(%x, %t, %y) {
    function = "Map", dims = array<i64: 40>, scan = array<i64>,
    operands = ["(i64, GL, [1])", "(f32, GL, [0], axes [1] of [30])", "(f32, GL, [1])"],
    body = "y = gather(x1, x0)", serial, schedule = ["rows vector d0:", "    pass y"]
  } : (memref<40xi64>, memref<30xf32>, memref<40xf32>) -> ()
  return
}

// -----

// There are no instructions for elements of two bytes.
// CHECK: func.func private @morello_map_40_
// CHECK-NOT: vector.gather
// CHECK: vector.from_elements
func.func @halves(%x: memref<40xi64>, %t: memref<30xbf16>, %y: memref<40xbf16>) {
  "morello.nest3"(%x, %t, %y) {
    function = "Map", dims = array<i64: 40>, scan = array<i64>,
    operands = ["(i64, GL, [1])", "(bf16, GL, [0], axes [1] of [30])", "(bf16, GL, [1])"],
    body = "y = gather(x1, x0)", serial, schedule = ["rows vector d0:", "    pass y"]
  } : (memref<40xi64>, memref<30xbf16>, memref<40xbf16>) -> ()
  return
}

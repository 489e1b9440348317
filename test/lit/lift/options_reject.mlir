// RUN: not morello-opt %s --morello-lift=threads=-1 2>&1 | FileCheck %s --check-prefix=THREADS
// RUN: not morello-opt %s --morello-lift=pack-limit=-1 2>&1 | FileCheck %s --check-prefix=LIMIT
// THREADS: error: 'builtin.module' op threads must not be negative: -1
// LIMIT: error: 'builtin.module' op pack-limit must not be negative: -1

func.func @nothing() {
  return
}

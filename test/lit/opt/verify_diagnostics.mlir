// RUN: morello-opt %s --split-input-file --verify-diagnostics --allow-unregistered-dialect

func.func @here() -> i32 {
  // expected-error @+1 {{op has 0 operands}}
  return
}

// -----

func.func @same_line() -> i32 {
  return // expected-error {{'func.return' op has 0 operands}}
}

// -----

func.func @above() -> i32 {
  return
  // expected-error@above {{enclosing function (@above) returns 1}}
}

// -----

func.func @below() -> i32 {
  // expected-error-re@below {{op has {{[0-9]+}} operands, but enclosing function ({{.*}}) returns 1}}
  return
}

// -----

func.func @minus() -> i32 {
  return

  // expected-error@-2 {{returns 1}}
}

// -----

// expected-note @+1 {{see existing symbol definition here}}
func.func private @twice()
// expected-error @+1 {{redefinition of symbol named 'twice'}}
func.func private @twice()

// The `morello` dialect: goals that are still to be implemented. `spec` is a contraction; by another name, where it has
// more operands. `nest2` and so on are anything made of elementwise ops and reductions over one iteration space; `chain4`
// and so on several of these, one after the other.
irdl.dialect @morello {
  // Operands: one memref for each tensor of the function that lives in a memory, several 1-D vectors for one that lives
  // in registers. Results: the new value of a register-resident output.
  //
  // A constraint value is a unification variable: all operands of one variadic group have the same type. So the leading
  // two operands stand alone, and the group is the last tensor: one memref, or a bundle of equal vectors.
  //
  // The attributes may be anything here, and which others are allowed is not said: IRDL's complaint about an attribute
  // of the wrong kind does not name it, and it knows no optional ones. verify.py checks both, and the types.
  irdl.operation @spec {
    %any_first = irdl.any
    %any_second = irdl.any
    %any_last = irdl.any
    %any_result = irdl.any
    %any_function = irdl.any
    %any_dims = irdl.any
    %any_operands = irdl.any
    irdl.operands(first: %any_first, second: %any_second, last: variadic %any_last)
    irdl.results(out: variadic %any_result)
    irdl.attributes { "function" = %any_function, "dims" = %any_dims, "operands" = %any_operands }
  }
  // Ops of four and more operands, whose types may all differ, and nests, are made up when the dialect is loaded.
  // MORE
}

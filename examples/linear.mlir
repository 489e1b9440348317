// A linear layer with bias and ReLU over 197 tokens of 768 features, as a frontend exports it: y = max(x W + b, 0).
func.func @linear(%x: tensor<197x768xf32>, %w: tensor<768x768xf32>, %b: tensor<768xf32>) -> tensor<197x768xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<197x768xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<197x768xf32>) -> tensor<197x768xf32>
  %xw = linalg.matmul ins(%x, %w : tensor<197x768xf32>, tensor<768x768xf32>)
                      outs(%init : tensor<197x768xf32>) -> tensor<197x768xf32>
  %y = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]
    } ins(%xw, %b : tensor<197x768xf32>, tensor<768xf32>) outs(%empty : tensor<197x768xf32>) {
    ^bb0(%v: f32, %bias: f32, %out: f32):
      %sum = arith.addf %v, %bias : f32
      %relu = arith.maximumf %sum, %zero : f32
      linalg.yield %relu : f32
  } -> tensor<197x768xf32>
  return %y : tensor<197x768xf32>
}

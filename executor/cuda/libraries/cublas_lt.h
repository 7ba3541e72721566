#pragma once
#include <cublasLt.h>

#include "executor/cuda/libraries/loaded_library.h"

// cuBLASLt, loaded when the first product is asked for. Linked, its relocations cost every program
// 200 MB of memory and a tenth of a second at its start, also those that never multiply.
namespace reckon::cuda {

/// Its functions, by their own names without the prefix.
struct CublasLt {
  decltype(&cublasLtCreate) create = nullptr;
  decltype(&cublasLtDestroy) destroy = nullptr;
  decltype(&cublasLtGetStatusString) status_string = nullptr;
  decltype(&cublasLtMatmul) matmul = nullptr;
  decltype(&cublasLtMatmulAlgoGetHeuristic) matmul_algo_get_heuristic = nullptr;
  decltype(&cublasLtMatmulDescCreate) matmul_desc_create = nullptr;
  decltype(&cublasLtMatmulDescDestroy) matmul_desc_destroy = nullptr;
  decltype(&cublasLtMatmulDescSetAttribute) matmul_desc_set_attribute = nullptr;
  decltype(&cublasLtMatmulPreferenceCreate) matmul_preference_create = nullptr;
  decltype(&cublasLtMatmulPreferenceDestroy) matmul_preference_destroy = nullptr;
  decltype(&cublasLtMatmulPreferenceSetAttribute) matmul_preference_set_attribute = nullptr;
  decltype(&cublasLtMatrixLayoutCreate) matrix_layout_create = nullptr;
  decltype(&cublasLtMatrixLayoutDestroy) matrix_layout_destroy = nullptr;
};

/// Loaded once, from any thread; stays. Throws DeviceError where the library that this was built
/// for is not found, or lacks a function.
const CublasLt& cublas_lt();
/// The library itself.
LoadedLibrary load_cublas_lt();

}  // namespace reckon::cuda

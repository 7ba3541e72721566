#include "executor/cuda/libraries/cublas_lt.h"

#include <fmt/format.h>

#include "executor/cuda/memory/buffers.h"

namespace reckon::cuda {
namespace {

CublasLt load() {
  LoadedLibrary library = load_cublas_lt();
  CublasLt lt;
  library.find(lt.create, "cublasLtCreate");
  library.find(lt.destroy, "cublasLtDestroy");
  library.find(lt.status_string, "cublasLtGetStatusString");
  library.find(lt.matmul, "cublasLtMatmul");
  library.find(lt.matmul_algo_get_heuristic, "cublasLtMatmulAlgoGetHeuristic");
  library.find(lt.matmul_desc_create, "cublasLtMatmulDescCreate");
  library.find(lt.matmul_desc_destroy, "cublasLtMatmulDescDestroy");
  library.find(lt.matmul_desc_set_attribute, "cublasLtMatmulDescSetAttribute");
  library.find(lt.matmul_preference_create, "cublasLtMatmulPreferenceCreate");
  library.find(lt.matmul_preference_destroy, "cublasLtMatmulPreferenceDestroy");
  library.find(lt.matmul_preference_set_attribute, "cublasLtMatmulPreferenceSetAttribute");
  library.find(lt.matrix_layout_create, "cublasLtMatrixLayoutCreate");
  library.find(lt.matrix_layout_destroy, "cublasLtMatrixLayoutDestroy");
  if (!library.problem().empty())
    throw DeviceError("products of matrices need cuBLASLt: " + library.problem());
  return lt;
}

}  // namespace

LoadedLibrary load_cublas_lt() {
  return LoadedLibrary(fmt::format("libcublasLt.so.{}", CUBLAS_VER_MAJOR),
                       RECKON_CUBLASLT_FOUND_AT);
}

const CublasLt& cublas_lt() {
  static const CublasLt kLibrary = load();
  return kLibrary;
}

}  // namespace reckon::cuda

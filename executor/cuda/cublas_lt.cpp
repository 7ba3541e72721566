#include "executor/cuda/cublas_lt.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <string>

#include "executor/cuda/device_memory.h"

namespace reckon::cuda {
namespace {

template <class Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  if (function == nullptr)
    throw DeviceError(fmt::format("cuBLASLt has no function {}: {}", name, ::dlerror()));
}

/// The loader's own search, then where the build found it.
void* open_library() {
  const std::string name = fmt::format("libcublasLt.so.{}", CUBLAS_VER_MAJOR);
  std::string problem;
  for (const char* at : {name.c_str(), RECKON_CUBLASLT_FOUND_AT}) {
    if (void* library = ::dlopen(at, RTLD_NOW | RTLD_LOCAL)) return library;
    if (problem.empty()) problem = ::dlerror();
  }
  throw DeviceError("cuBLASLt is not found: " + problem);
}

CublasLt load() {
  void* library = open_library();
  CublasLt lt;
  find(library, "cublasLtCreate", lt.create);
  find(library, "cublasLtDestroy", lt.destroy);
  find(library, "cublasLtGetStatusString", lt.status_string);
  find(library, "cublasLtMatmul", lt.matmul);
  find(library, "cublasLtMatmulAlgoGetHeuristic", lt.matmul_algo_get_heuristic);
  find(library, "cublasLtMatmulDescCreate", lt.matmul_desc_create);
  find(library, "cublasLtMatmulDescDestroy", lt.matmul_desc_destroy);
  find(library, "cublasLtMatmulDescSetAttribute", lt.matmul_desc_set_attribute);
  find(library, "cublasLtMatmulPreferenceCreate", lt.matmul_preference_create);
  find(library, "cublasLtMatmulPreferenceDestroy", lt.matmul_preference_destroy);
  find(library, "cublasLtMatmulPreferenceSetAttribute", lt.matmul_preference_set_attribute);
  find(library, "cublasLtMatrixLayoutCreate", lt.matrix_layout_create);
  find(library, "cublasLtMatrixLayoutDestroy", lt.matrix_layout_destroy);
  return lt;
}

}  // namespace

const CublasLt& cublas_lt() {
  static const CublasLt kLibrary = load();
  return kLibrary;
}

}  // namespace reckon::cuda

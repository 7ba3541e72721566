#include "executor/cuda/libraries/run_time_libraries.h"

#include "executor/cuda/libraries/cublas_lt.h"
#include "executor/cuda/libraries/nccl.h"

namespace reckon::cuda {

std::vector<LoadedLibrary> run_time_libraries() {
  std::vector<LoadedLibrary> all{load_cublas_lt()};
#ifdef RECKON_WITH_NCCL
  all.push_back(load_nccl());
#endif
  return all;
}

}  // namespace reckon::cuda

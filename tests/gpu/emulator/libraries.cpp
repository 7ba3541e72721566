#include "executor/cuda/libraries/nccl.h"
#include "executor/cuda/libraries/run_time_libraries.h"

// What a program on the emulator finds of CUDA's libraries: nothing, and needs none.
namespace reckon::cuda {

std::string why_no_nccl() { return "emulated devices have none"; }
std::string nccl_version() { return ""; }
std::vector<LoadedLibrary> run_time_libraries() { return {}; }

}  // namespace reckon::cuda

#pragma once
#include <vector>

#include "executor/cuda/libraries/loaded_library.h"

namespace reckon::cuda {

/// The shared libraries that are loaded when they are first needed, so that the program's own list
/// (ldd's) names none of them: cuBLASLt, and NCCL where the build found its header. An image of the
/// program must hold them. Loads all of them; whether each is there, LoadedLibrary::problem() says.
std::vector<LoadedLibrary> run_time_libraries();

}  // namespace reckon::cuda

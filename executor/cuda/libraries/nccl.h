#pragma once
#ifdef RECKON_WITH_NCCL
#include <nccl.h>
#endif

#include <string>

#include "executor/cuda/libraries/loaded_library.h"

// NCCL, loaded at run time as NVML is: a program that brings everything but CUDA runs with one
// device where there is no NCCL, and takes the one that PyTorch brought along where there is.
namespace reckon::cuda {

/// "" where it can be used; else what the loader says, or that this build had no nccl.h.
std::string why_no_nccl();
/// "2.27.3". Throws DeviceError where there is none.
std::string nccl_version();

#ifdef RECKON_WITH_NCCL
struct NcclLibrary {
  decltype(&::ncclGetVersion) get_version = nullptr;
  decltype(&::ncclGetErrorString) get_error_string = nullptr;
  decltype(&::ncclGetUniqueId) get_unique_id = nullptr;
  decltype(&::ncclCommInitRankConfig) comm_init_rank_config = nullptr;
  decltype(&::ncclCommGetAsyncError) get_async_error = nullptr;
  decltype(&::ncclCommFinalize) comm_finalize = nullptr;
  decltype(&::ncclCommDestroy) comm_destroy = nullptr;
  decltype(&::ncclCommAbort) comm_abort = nullptr;
  decltype(&::ncclAllReduce) all_reduce = nullptr;
  decltype(&::ncclAllGather) all_gather = nullptr;
  decltype(&::ncclReduceScatter) reduce_scatter = nullptr;
  decltype(&::ncclBroadcast) broadcast = nullptr;
  decltype(&::ncclSend) send = nullptr;
  decltype(&::ncclRecv) receive = nullptr;
  decltype(&::ncclGroupStart) group_start = nullptr;
  decltype(&::ncclGroupEnd) group_end = nullptr;
};
/// Loaded at the first call and kept. Throws DeviceError where why_no_nccl() says why.
const NcclLibrary& nccl_library();
/// The library itself.
LoadedLibrary load_nccl();
#endif

}  // namespace reckon::cuda

#include <array>

#include "sim/base/text/lower_case.h"
#include "sim/measurement/profiles/profile.h"

namespace reckon {
namespace {

struct KindOfWord {
  std::string_view word;  // in a kernel's name, in lower case
  KernelKind kind;
};
/// The first that is in the name counts: FlashAttention's kernels are CUTLASS products by part of
/// theirs. Names as cuBLAS, cuDNN, CUTLASS, FlashAttention, xFormers, Triton, NCCL and RCCL have
/// them.
constexpr std::array kKindsOfWords{KindOfWord{"nccl", KernelKind::communication},
                                   KindOfWord{"rccl", KernelKind::communication},
                                   KindOfWord{"nvshmem", KernelKind::communication},
                                   KindOfWord{"allreduce", KernelKind::communication},
                                   KindOfWord{"flash", KernelKind::attention},
                                   KindOfWord{"fmha", KernelKind::attention},
                                   KindOfWord{"attention", KernelKind::attention},
                                   KindOfWord{"_sdpa_", KernelKind::attention},
                                   KindOfWord{"attn_fwd", KernelKind::attention},
                                   KindOfWord{"attn_bwd", KernelKind::attention},
                                   KindOfWord{"gemm", KernelKind::product},
                                   KindOfWord{"gemv", KernelKind::product},
                                   KindOfWord{"cutlass", KernelKind::product},
                                   KindOfWord{"xmma", KernelKind::product},
                                   KindOfWord{"nvjet", KernelKind::product},
                                   KindOfWord{"cublas", KernelKind::product},
                                   KindOfWord{"matmul", KernelKind::product},
                                   KindOfWord{"splitk", KernelKind::product},
                                   KindOfWord{"s884", KernelKind::product},
                                   KindOfWord{"s1688", KernelKind::product},
                                   KindOfWord{"s16816", KernelKind::product},
                                   KindOfWord{"convolve", KernelKind::product},
                                   KindOfWord{"dgrad", KernelKind::product},
                                   KindOfWord{"wgrad", KernelKind::product},
                                   KindOfWord{"winograd", KernelKind::product},
                                   KindOfWord{"conv2d", KernelKind::product}};

}  // namespace

KernelKind kernel_kind(std::string_view name) {
  constexpr std::size_t kMost = 400;  // the rest of a demangled name are its types
  const std::string lower = lower_case(name.substr(0, kMost));
  for (const KindOfWord& k : kKindsOfWords)
    if (lower.find(k.word) != std::string::npos) return k.kind;
  return KernelKind::memory;
}

}  // namespace reckon

#pragma once
#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/half.h"

// What every kernel needs: launching, packed loads and stores, sums over a warp and over a block.
// `cuda_runtime.h` is CUDA's, or that of tests/gpu/emulator, which runs the same kernels on a CPU.
namespace reckon::gpu {

constexpr unsigned kAllLanes = 0xffffffffu;

/// Enough blocks for `n` items, `each` a block.
constexpr unsigned blocks_for(std::int64_t n, std::int64_t each) {
  return static_cast<unsigned>((n + each - 1) / each);
}
constexpr std::int64_t round_up(std::int64_t n, std::int64_t to) { return (n + to - 1) / to * to; }

#ifdef __CUDACC__
/// Calls a kernel; the launch status. More than 48 KiB of dynamic shared memory is asked for first.
template <class... Parameters, class... Arguments>
cudaError_t launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared,
                   cudaStream_t stream, Arguments... arguments) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return cudaSuccess;
  if (shared > 48 * 1024) {
    const cudaError_t status = cudaFuncSetAttribute(
        kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared));
    if (status != cudaSuccess) return status;
  }
  kernel<<<grid, block, shared, stream>>>(static_cast<Parameters>(arguments)...);
  return cudaGetLastError();
}
/// The block's dynamic shared memory.
template <class T>
__device__ inline T* dynamic_shared() {
  extern __shared__ __align__(16) unsigned char reckon_dynamic_shared[];
  return reinterpret_cast<T*>(reckon_dynamic_shared);
}
#endif

/// N neighbours that travel in one access; 16 bytes where they are aligned so.
template <class E, int N>
struct alignas(sizeof(E) * N) Pack {
  E at[N];
};
/// Elements of 16 bytes.
template <class E>
constexpr int kPack = static_cast<int>(16 / sizeof(E));

template <class... P>
bool aligned16(const P*... pointers) {
  return ((reinterpret_cast<std::uintptr_t>(pointers) % 16 == 0) && ...);
}

template <int N, class E>
__device__ inline Pack<E, N> load(const E* from) {
  return *reinterpret_cast<const Pack<E, N>*>(from);
}
template <int N, class E>
__device__ inline void store(E* to, const Pack<E, N>& pack) {
  *reinterpret_cast<Pack<E, N>*>(to) = pack;
}

/// A copy to shared memory that goes on beside the thread (cp.async, from sm_80 on; older devices
/// copy at once). kBytes: 4 or 16, both aligned so; not `there`: zeros, and nothing is read. Of 16
/// bytes: kInL1 keeps them in the first cache too, for what a block reads again soon.
template <int kBytes, bool kInL1 = false, class T>
__device__ inline void copy_to_shared(T* to, const T* from, bool there) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(to));
  const int bytes = there ? kBytes : 0;
  if constexpr (kBytes == 16 && !kInL1)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :
                 : "r"(address), "l"(from), "r"(bytes)
                 : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;"
                 :
                 : "r"(address), "l"(from), "n"(kBytes), "r"(bytes)
                 : "memory");
#else
  constexpr int N = kBytes / static_cast<int>(sizeof(T));
  Pack<T, N> pack{};
  if (there) pack = load<N>(from);
  store(to, pack);
#endif
}
/// This thread's copies so far are one group.
__device__ inline void end_copies() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
/// Until all of this thread's copies are there, or all but those of the latest kUnderWay groups;
/// other threads see them behind a barrier.
template <int kUnderWay = 0>
__device__ inline void wait_for_copies() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" : : "n"(kUnderWay) : "memory");
#endif
}

/// The same in all lanes, in a fixed order.
__device__ inline float warp_sum(float x) {
  for (int distance = 16; distance > 0; distance /= 2) x += __shfl_xor_sync(kAllLanes, x, distance);
  return x;
}
__device__ inline float warp_max(float x) {
  for (int distance = 16; distance > 0; distance /= 2)
    x = fmaxf(x, __shfl_xor_sync(kAllLanes, x, distance));
  return x;
}

/// Sum over a block of whole warps, the same in all threads. `shared`: 32 floats; the call begins
/// with a barrier, so it may be used again at once.
__device__ inline float block_sum(float x, float* shared) {
  const unsigned warps = blockDim.x / 32, lane = threadIdx.x % 32;
  x = warp_sum(x);
  __syncthreads();
  if (lane == 0) shared[threadIdx.x / 32] = x;
  __syncthreads();
  return warp_sum(lane < warps ? shared[lane] : 0.0f);
}
__device__ inline float block_max(float x, float* shared) {
  const unsigned warps = blockDim.x / 32, lane = threadIdx.x % 32;
  x = warp_max(x);
  __syncthreads();
  if (lane == 0) shared[threadIdx.x / 32] = x;
  __syncthreads();
  return warp_max(lane < warps ? shared[lane] : shared[0]);
}

/// What a gradient gets: set by the first consumer of a tensor, added to by the others.
template <class E>
__device__ inline E put(E before, bool accumulate, float value) {
  return from_float<E>(accumulate ? to_float(before) + value : value);
}

}  // namespace reckon::gpu

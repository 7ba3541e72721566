#pragma once
#include <atomic>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <tuple>

// As much of CUDA's runtime as our kernels use, on one CPU core: a block's threads are fibers, so
// barriers, shuffles and matrix instructions mean what they mean on a device. It finds wrong
// indices, missed tails, barriers that not all threads reach and, by running warps in both orders
// (every second launch begins with the last), most races between warps. It says nothing about
// speed, and nothing about races inside a warp: compute-sanitizer on a device does.
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __shared__ static
#define __launch_bounds__(...)
#define __restrict__

using cudaError_t = int;
using cudaStream_t = void*;
constexpr cudaError_t cudaSuccess = 0, cudaErrorInvalidValue = 1, cudaErrorMemoryAllocation = 2;
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice };

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
};
struct float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};

namespace reckon::emulator {
struct Place {
  dim3 thread{0, 0, 0}, block{0, 0, 0}, block_size, grid_size;
};
extern Place here;
void run(dim3 grid, dim3 block, std::size_t shared, const std::function<void()>& body);
void block_barrier();
void warp_barrier();
unsigned char* shared_memory();
/// Words of each lane of the warp, for exchanges between two warp barriers.
struct Slot {
  std::uint32_t word[16];
};
Slot* warp_slots();
unsigned lane();
// mma.m16n8k16 and ldmatrix.x4, with the fragments of kernels/mma.cuh; see matrix.cpp.
/// `value`: of the 16 bits of an element.
void multiply_add(float (&c)[4], const std::uint32_t* a, const std::uint32_t* b,
                  float (*value)(std::uint16_t));
void load_matrices(std::uint32_t (&r)[4], const void* row, bool transposed);
}  // namespace reckon::emulator

#define threadIdx (::reckon::emulator::here.thread)
#define blockIdx (::reckon::emulator::here.block)
#define blockDim (::reckon::emulator::here.block_size)
#define gridDim (::reckon::emulator::here.grid_size)

inline void __syncthreads() { reckon::emulator::block_barrier(); }
inline void __syncwarp() { reckon::emulator::warp_barrier(); }

template <class T>
T reckon_shuffle(T x, unsigned from) {
  static_assert(sizeof(T) == 4);
  reckon::emulator::Slot* slots = reckon::emulator::warp_slots();
  slots[reckon::emulator::lane()].word[0] = std::bit_cast<std::uint32_t>(x);
  reckon::emulator::warp_barrier();
  const T got = std::bit_cast<T>(slots[from].word[0]);
  reckon::emulator::warp_barrier();
  return got;
}
template <class T>
T __shfl_xor_sync(unsigned, T x, int mask) {
  return reckon_shuffle(x, reckon::emulator::lane() ^ static_cast<unsigned>(mask));
}
template <class T>
T __shfl_sync(unsigned, T x, int from) {
  return reckon_shuffle(x, static_cast<unsigned>(from));
}

inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fsqrt_rn(float a) { return std::sqrt(a); }
inline float rsqrtf(float a) { return 1.0f / std::sqrt(a); }
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>((std::uint64_t{a} * b) >> 32);
}

inline const char* cudaGetErrorString(cudaError_t e) { return e == 0 ? "no error" : "emulated"; }
inline cudaError_t cudaGetLastError() { return cudaSuccess; }
inline cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
inline cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
/// Of a process; a thread that is a rank has one of its own, as far as NCCL asks.
inline cudaError_t cudaGetDeviceCount(int* n) {
  const char* said = std::getenv("RECKON_EMULATED_DEVICES");
  *n = said != nullptr ? std::atoi(said) : 1;
  return cudaSuccess;
}
inline cudaError_t cudaDeviceGetPCIBusId(char* id, int length, int) {
  static std::atomic<int> next{0};
  thread_local const int own = next++;
  std::snprintf(id, static_cast<std::size_t>(length), "%04x", own);
  return cudaSuccess;
}
inline cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
  *can = 1;
  return cudaSuccess;
}
struct cudaDeviceProp {
  char name[256];
};
inline cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  std::strcpy(properties->name, "emulated device");
  return cudaSuccess;
}
inline cudaError_t cudaSetDevice(int) { return cudaSuccess; }
inline cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
template <class T>
cudaError_t cudaMalloc(T** p, std::size_t bytes) {
  // Rounded up to lines and no further, so that the address sanitizer sees what goes past the end.
  *p = static_cast<T*>(std::aligned_alloc(256, (bytes + 255) / 256 * 256));
  return *p != nullptr ? cudaSuccess : cudaErrorMemoryAllocation;
}
inline cudaError_t cudaFree(void* p) {
  std::free(p);
  return cudaSuccess;
}
template <class T>
cudaError_t cudaMallocHost(T** p, std::size_t bytes) {
  return cudaMalloc(p, bytes);
}
inline cudaError_t cudaFreeHost(void* p) { return cudaFree(p); }
constexpr unsigned cudaHostRegisterDefault = 0;
inline cudaError_t cudaHostRegister(void*, std::size_t, unsigned) { return cudaSuccess; }
inline cudaError_t cudaHostUnregister(void*) { return cudaSuccess; }
inline cudaError_t cudaMemcpy(void* to, const void* from, std::size_t n, cudaMemcpyKind) {
  std::memcpy(to, from, n);
  return cudaSuccess;
}
inline cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t n, cudaMemcpyKind,
                                   cudaStream_t) {
  std::memcpy(to, from, n);
  return cudaSuccess;
}
inline cudaError_t cudaMemsetAsync(void* to, int value, std::size_t n, cudaStream_t) {
  std::memset(to, value, n);
  return cudaSuccess;
}
inline cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  *stream = nullptr;
  return cudaSuccess;
}
inline cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
using cudaEvent_t = void*;
constexpr unsigned cudaEventDisableTiming = 2;
inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = nullptr;
  return cudaSuccess;
}
inline cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }
inline cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { return cudaSuccess; }
inline cudaError_t cudaEventQuery(cudaEvent_t) { return cudaSuccess; }
inline cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
inline cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return cudaSuccess; }

namespace reckon::gpu {
template <class... Parameters, class... Arguments>
cudaError_t launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared,
                   cudaStream_t, Arguments... arguments) {
  const std::tuple<Parameters...> all{static_cast<Parameters>(arguments)...};
  emulator::run(grid, block, shared, [&] { std::apply(kernel, all); });
  return cudaSuccess;
}
template <class T>
T* dynamic_shared() {
  return reinterpret_cast<T*>(emulator::shared_memory());
}
}  // namespace reckon::gpu

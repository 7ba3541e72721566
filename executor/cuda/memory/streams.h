#pragma once
#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>

#include "executor/cuda/memory/buffers.h"

// What copies between a device and its host go on.
namespace reckon::cuda {

/// Memory of the host that a device copies from and to while both go on.
template <class T = float>
class PinnedBuffer {
 public:
  PinnedBuffer() = default;
  explicit PinnedBuffer(std::size_t count) : count_(count) {
    check(cudaMallocHost(&data_, std::max<std::size_t>(1, count) * sizeof(T)),
          "memory that a device copies to");
  }
  ~PinnedBuffer() {
    if (data_ != nullptr) cudaFreeHost(data_);
  }
  PinnedBuffer(PinnedBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), count_(std::exchange(other.count_, 0)) {}
  PinnedBuffer& operator=(PinnedBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(count_, other.count_);
    return *this;
  }
  std::span<T> span() const { return {data_, count_}; }
  T* data() const { return data_; }

 private:
  T* data_ = nullptr;
  std::size_t count_ = 0;
};

class Event {
 public:
  Event() { check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "an event"); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

class OwnStream {
 public:
  OwnStream() { check(cudaStreamCreate(&stream_), "a stream"); }
  ~OwnStream() { cudaStreamDestroy(stream_); }
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

}  // namespace reckon::cuda

#pragma once
#include <cuda_runtime.h>
#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "kernels/half.h"
#include "support/skip.h"

// What every test of a kernel needs. The same tests are two programs: test_gpu on a device, and
// test_emulated on the emulator of tests/gpu/emulator, where no device is needed.
namespace reckon {

inline void require_device() {
  int devices = 0;
  const cudaError_t status = cudaGetDeviceCount(&devices);
  if (status != cudaSuccess || devices == 0)
    skip_test(std::string("no CUDA device: ") + cudaGetErrorString(status));
}

/// Of kernels on tensor cores, which take what they are asked about on a device that has them.
inline void require_device_that(bool takes) {
  if (!takes) skip_test("the device is older than the instructions (sm_80)");
}

inline void finish(cudaError_t status) {
  REQUIRE(std::string(cudaGetErrorString(status)) == cudaGetErrorString(cudaSuccess));
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
}

/// A device copy of a vector, freed at the end of the scope. `skew` elements from 16 bytes.
template <class T>
struct DeviceArray {
  T* data = nullptr;
  T* allocated = nullptr;
  std::size_t count = 0;
  explicit DeviceArray(const std::vector<T>& host, std::size_t skew = 0) : count(host.size()) {
    REQUIRE(cudaMalloc(&allocated, (count + skew) * sizeof(T)) == cudaSuccess);
    data = allocated + skew;
    REQUIRE(cudaMemcpy(data, host.data(), count * sizeof(T), cudaMemcpyHostToDevice) ==
            cudaSuccess);
  }
  /// Not a number, until a kernel writes.
  explicit DeviceArray(std::size_t n) : DeviceArray(unset(n)) {}
  ~DeviceArray() { cudaFree(allocated); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  std::vector<T> host(std::size_t n) const {
    std::vector<T> out(n);
    REQUIRE(cudaMemcpy(out.data(), data, n * sizeof(T), cudaMemcpyDeviceToHost) == cudaSuccess);
    return out;
  }
  std::vector<double> values() const {
    std::vector<double> out;
    for (const T x : host(count)) {
      if constexpr (requires { x.bits; })
        out.push_back(to_float(x));
      else
        out.push_back(static_cast<double>(x));
    }
    return out;
  }

 private:
  static std::vector<T> unset(std::size_t n) {
    if constexpr (requires(T x) { x.bits; })
      return std::vector<T>(n, T{0x7fff});
    else
      return std::vector<T>(n, static_cast<T>(NAN));
  }
};

/// Numbers that E holds exactly, in [-1, 1), the same every time.
template <class E>
struct Draw {
  std::vector<E> elements;
  std::vector<double> values;
  Draw(std::size_t n, std::uint32_t seed) {
    for (std::size_t i = 0; i < n; ++i) {
      seed = seed * 1664525u + 1013904223u;  // [Knuth 1997, section 3.3.4, table 1, line 16]
      const E x = from_float<E>(static_cast<float>(seed >> 8) * 0x1p-23f - 1.0f);
      elements.push_back(x);
      values.push_back(double{to_float(x)});
    }
  }
};

/// Unit roundoff of E; that of the sums.
template <class E>
constexpr double kRoundoff = std::is_same_v<E, Bf16>   ? 0x1p-8
                             : std::is_same_v<E, Half> ? 0x1p-11
                                                       : 0x1p-24;
constexpr double kSumRoundoff = 0x1p-24;

/// Every |actual - expected| <= bound(expected): the worst by its share of the bound.
template <class Bound>
void check_near(const std::vector<double>& actual, const std::vector<double>& expected,
                Bound bound) {
  REQUIRE(actual.size() == expected.size());
  double worst = 0;
  std::size_t where = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const double share = std::abs(actual[i] - expected[i]) / bound(expected[i]);
    if (share <= worst) continue;  // a NaN is the worst
    worst = share;
    where = i;
    if (std::isnan(share)) break;
  }
  INFO("element " << where << " of " << actual.size() << ": " << actual[where] << " for "
                  << expected[where] << ", bound " << bound(expected[where]));
  CHECK(worst <= 1);
}

/// The root mean square of the errors, as a share of that of the expected values. Roundings are
/// independent, so sums keep the share that their terms have: a few roundoffs, whatever the length.
inline void check_share(const std::vector<double>& actual, const std::vector<double>& expected,
                        double share) {
  double errors = 0, values = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    errors += (actual[i] - expected[i]) * (actual[i] - expected[i]);
    values += expected[i] * expected[i];
  }
  CHECK(std::sqrt(errors) <= share * std::sqrt(values) + 1e-30);
}

}  // namespace reckon

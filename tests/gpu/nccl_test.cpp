#include "executor/cuda/exchange/nccl_communicator.h"

#include <thread>

#include "device.h"
#include "executor/comm/thread_communicator.h"
#include "executor/cuda/libraries/nccl.h"
#include "executor/cuda/memory/buffers.h"

// Collectives between devices, on what one device can show: a world of one rank, in which sums are
// what was given, to the bit, at every size. Two ranks on one device are refused.
using namespace reckon;

namespace {

void require_nccl() {
  if (const std::string problem = cuda::why_no_nccl(); !problem.empty())
    skip_test("no NCCL: " + problem);
}

template <class T>
std::vector<T> numbers(std::size_t count) {
  std::vector<T> out(count);
  for (std::size_t k = 0; k < count; ++k) out[k] = T(k % 2048) - T(1000);
  return out;
}

template <class T>
void sums_are_kept(Communicator& nccl, std::size_t count) {
  INFO(count << " values of " << sizeof(T) << " bytes");
  const std::vector<T> given = numbers<T>(count);
  const DeviceArray<T> device(given);
  nccl.all_reduce(std::span<T>(device.data, count));
  REQUIRE(device.host(count) == given);
}

}  // namespace

TEST_CASE("NCCL is loaded where it is, with all that collectives call", "[nccl]") {
  require_nccl();
  CHECK(cuda::nccl_version().starts_with("2."));
}

TEST_CASE("NCCL's collectives of one rank keep every bit, at odd sizes", "[nccl]") {
  require_device();
  require_nccl();
  const auto control = make_thread_communicators(1);
  const auto nccl = cuda::make_nccl_communicator(*control.front(), 0);
  CHECK(nccl->rank() == 0);
  CHECK(nccl->size() == 1);
  for (const std::size_t count : {1, 3, 127, 1025, 1'000'003}) {
    sums_are_kept<float>(*nccl, count);
    sums_are_kept<double>(*nccl, count);
    sums_are_kept<std::int64_t>(*nccl, count);
    const std::vector<float> given = numbers<float>(count);
    const DeviceArray<float> from(given);
    const auto arrives = [&](auto&& collective) {
      const DeviceArray<float> to(count);
      collective(std::span<const float>(from.data, count), std::span<float>(to.data, count));
      REQUIRE(to.host(count) == given);
    };
    arrives([&](auto a, auto b) { nccl->all_gather(a, b); });
    arrives([&](auto a, auto b) { nccl->reduce_scatter(a, b); });
    arrives([&](auto a, auto b) { nccl->all_to_all(a, b); });
    arrives([&](auto a, auto b) {
      const cuda::DeviceSwap swap{std::as_bytes(a), std::as_writable_bytes(b)};
      nccl->queue_swaps(std::span(&swap, 1), nullptr);
    });
  }
  nccl->barrier();
}

TEST_CASE("NCCL sums gradients behind the stream that makes them", "[nccl]") {
  require_device();
  require_nccl();
  const auto control = make_thread_communicators(1);
  const auto nccl = cuda::make_nccl_communicator(*control.front(), 0);
  cudaStream_t stream = nullptr;
  REQUIRE(cudaStreamCreate(&stream) == cudaSuccess);
  const std::vector<float> given = numbers<float>(100'001);
  cuda::DeviceBuffer<float> gradient{std::int64_t(given.size())};
  REQUIRE(cudaMemcpyAsync(gradient.data(), given.data(), given.size() * sizeof(float),
                          cudaMemcpyHostToDevice, stream) == cudaSuccess);
  const std::vector<std::span<float>> ranges{gradient.span().first(777),
                                             gradient.span().subspan(777)};
  nccl->queue_sums(ranges, stream);
  nccl->join(stream);
  std::vector<float> back(given.size());
  REQUIRE(cudaMemcpyAsync(back.data(), gradient.data(), back.size() * sizeof(float),
                          cudaMemcpyDeviceToHost, stream) == cudaSuccess);
  REQUIRE(cudaStreamSynchronize(stream) == cudaSuccess);
  CHECK(back == given);
  cudaStreamDestroy(stream);
}

TEST_CASE("two ranks on one device are refused by name", "[nccl]") {
  require_device();
  require_nccl();
  auto control = make_thread_communicators(2);
  std::vector<std::string> said(2);
  const auto join_as = [&](std::size_t rank) {
    try {
      cuda::make_nccl_communicator(*control[rank], 0);
    } catch (const cuda::DeviceError& e) {
      said[rank] = e.what();
    }
  };
  std::thread other(join_as, 1);
  join_as(0);
  other.join();
  for (const std::string& text : said)
    CHECK(text.find("ranks 0 and 1 are both on device") != std::string::npos);
}

#include "sim/measurement/profiles/kineto.h"

#include <catch2/catch.hpp>

using namespace reckon;

namespace {

/// Two steps of 1000 us as torch.profiler 2.x writes them (docs.pytorch.org,
/// "torch.profiler.profile.export_chrome_trace"; libkineto/src/output_json.cpp): the first's
/// kernels are a product from 100 to 500, a copy from 500 to 550, attention from 550 to 650 and an
/// all-reduce on another stream from 400 to 800. The second's are the same.
std::string trace() {
  std::string events;
  const auto add = [&](const std::string& event) {
    events += (events.empty() ? "" : ",\n") + event;
  };
  for (int step = 0; step < 2; ++step) {
    const int at = 5000 + 1000 * step;
    const auto span = [&](const std::string& category, const std::string& name, int from, int took,
                          const std::string& arguments) {
      add(R"({"ph": "X", "cat": ")" + category + R"(", "name": ")" + name +
          R"(", "pid": 0, "tid": 7, "ts": )" + std::to_string(at + from) +
          ".000, \"dur\": " + std::to_string(took) + ".000, \"args\": {" + arguments + "}}");
    };
    const std::string on = R"("device": 0, "stream": )";
    span("user_annotation", "ProfilerStep#" + std::to_string(3 + step), 0, 1000, "");
    span("gpu_user_annotation", "ProfilerStep#" + std::to_string(3 + step), 100, 700, "");
    span("cpu_op", "aten::mm", 20, 30, R"("Input Dims": [[8, 4], [4, 8]])");
    span("kernel", "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_tn", 100, 400, on + "7");
    span("gpu_memcpy", "Memcpy DtoD (Device -> Device)", 500, 50, on + "7");
    span("kernel", "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64>>", 550, 100,
         on + "7");
    span("kernel", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevComm*)", 400, 400,
         on + R"(20, "Collective name": "allreduce", "In msg nelems": 1000, "Out msg nelems": 1000,
          "dtype": "BFloat16", "Group size": 8)");
  }
  return R"({"schemaVersion": 1,
  "deviceProperties": [{"id": 0, "name": "NVIDIA A100-SXM4-80GB", "totalGlobalMem": 85}],
  "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 8},
  "traceEvents": [
)" + events +
         "\n]}\n";
}

}  // namespace

TEST_CASE("a trace of PyTorch is its steps and what they went to") {
  REQUIRE(is_kineto(trace()));
  const auto read = parse_kineto("trace.json", trace());
  REQUIRE(read);
  CHECK(read->device == "NVIDIA A100-SXM4-80GB");
  CHECK(read->ranks == 8);
  REQUIRE(read->steps.size() == 2);
  CHECK(read->steps[0] == Approx(1e-3));
  const ProfiledParts& p = read->parts;
  CHECK(p.product.count() == Approx(400e-6));
  CHECK(p.memory.count() == Approx(50e-6));
  CHECK(p.attention.count() == Approx(100e-6));
  CHECK(p.communication.count() == Approx(400e-6));
  CHECK(p.exposed_communication.count() == Approx(150e-6));  // from 650 to 800
  CHECK(p.idle.count() == Approx(300e-6));                   // to 100, from 800
  CHECK(p.total().count() == Approx(1e-3));
  REQUIRE(read->collectives.size() == 1);
  CHECK(read->collectives[0].name == "allreduce");
  CHECK(read->collectives[0].size == Bytes{2000});
  CHECK(read->collectives[0].calls == Approx(1));
  CHECK(read->collectives[0].time.count() == Approx(400e-6));
}

TEST_CASE("what a trace lacks is said with what to do, at its line") {
  const auto error = [](const std::string& text) {
    const auto read = parse_kineto("t.json", text);
    REQUIRE(!read);
    return format(read.error());
  };
  CHECK_THAT(error("{\"traceEvents\": []}"), Catch::Contains("no span 'ProfilerStep#N'"));
  CHECK_THAT(error("{\"traceEvents\": []}"), Catch::Contains("profiler.step()"));
  CHECK_THAT(error("{\"other\": 1}"), Catch::Contains("no list 'traceEvents'"));
  const std::string step =
      R"({"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "ts": 5, "dur": 9})";
  CHECK_THAT(error("{\"traceEvents\": [" + step + "]}"), Catch::Contains("no kernel of a GPU"));
  CHECK_THAT(error("{\"traceEvents\": [\n" + step +
                   ",\n{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"k\", \"ts\": 5}\n]}"),
             Catch::StartsWith("t.json:3:"));
  CHECK_THAT(error("{\"traceEvents\": [\n\n{\"ph\": ]}"), Catch::StartsWith("t.json:3:"));
  CHECK_THAT(error("{\"traceEvents\": [\n\n{\"ph\": ]}"), Catch::Contains("no JSON: syntax error"));
  CHECK_THAT(error("{\"traceEvents\": " + std::string(100'000, '[')), Catch::Contains("deep"));
  CHECK(error("{\"traceEvents\": [{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"k\", \"ts\": "
              "1e300, \"dur\": 1}]}")
            .find("has no ts and dur") != std::string::npos);
}

TEST_CASE("kernels are told apart by the names that libraries give them") {
  CHECK(kernel_kind("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n") == KernelKind::product);
  CHECK(kernel_kind("nvjet_hsh_128x256_64x4_2x1_v_bz_coopA_NNT") == KernelKind::product);
  CHECK(kernel_kind("void cutlass::Kernel2<cutlass_80_tensorop_s16816gemm>") ==
        KernelKind::product);
  CHECK(kernel_kind("void implicit_convolve_sgemm<float>") == KernelKind::product);
  CHECK(kernel_kind("fmha_cutlassF_bf16_aligned_64x64_rf_sm80") == KernelKind::attention);
  CHECK(kernel_kind("cudnn_generated_fort_native_sdpa_sm90_flash_fprop") == KernelKind::attention);
  CHECK(kernel_kind("ncclKernel_ReduceScatter_RING_SIMPLE") == KernelKind::communication);
  CHECK(kernel_kind("void at::native::vectorized_elementwise_kernel<4>") == KernelKind::memory);
  CHECK(kernel_kind("multi_tensor_apply_kernel") == KernelKind::memory);
}

TEST_CASE("steps join where little lies between them, and not where much does") {
  const auto joined = joined_windows({{1000, 1900}, {0, 900}, {2000, 2900}, {9000, 9900}});
  REQUIRE(joined.size() == 4);
  CHECK(joined[0].end == 1000);
  CHECK(joined[1].end == 2000);
  CHECK(joined[2].end == 2900);  // an evaluation followed
  CHECK(joined_windows({{0, 100}, {10, 50}}).size() == 1);
}

TEST_CASE("parts are means over devices, and kernels beside each other count once") {
  Profile profile;
  const std::vector<ProfiledWindow> steps{{0, 1000}};
  set_steps(profile,
            {{0, 600, 0, KernelKind::product},
             {300, 500, 0, KernelKind::product},
             {400, 800, 0, KernelKind::memory},
             {900, 1200, 0, KernelKind::communication},  // cut at the step's end
             {0, 1000, 1, KernelKind::product}},
            steps);
  CHECK(profile.devices == 2);
  CHECK(profile.parts.product.count() == Approx((600 + 1000) / 2 * 1e-9));
  CHECK(profile.parts.memory.count() == Approx(200 / 2 * 1e-9));
  CHECK(profile.parts.exposed_communication.count() == Approx(100 / 2 * 1e-9));
  CHECK(profile.parts.idle.count() == Approx(100 / 2 * 1e-9));
}

#include "sim/measurement/profiles/nsys.h"

#include <sqlite3.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>

using namespace reckon;

namespace {

/// Tables as Nsight Systems exports them (docs.nvidia.com/nsight-systems, "SQLite Export Schema
/// Reference"), with the columns that are read and some others.
constexpr const char* kSchema =
    "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, \"end\" INTEGER NOT NULL, "
    "deviceId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, demangledName "
    "INTEGER NOT NULL, shortName INTEGER NOT NULL);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER NOT NULL, \"end\" INTEGER NOT NULL, "
    "deviceId INTEGER NOT NULL, bytes INTEGER NOT NULL);"
    "CREATE TABLE TARGET_INFO_GPU (id INTEGER NOT NULL, name TEXT);";
constexpr const char* kRanges =
    "CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, \"end\" INTEGER, eventType INTEGER NOT "
    "NULL, "
    "text TEXT, globalTid INTEGER, textId INTEGER);";
/// Two steps of 1000 ns and one that follows after a pause of 500 and is of another thread.
constexpr const char* kRows =
    "INSERT INTO StringIds VALUES (1, 'sm80_xmma_gemm_f16'), (2, 'ncclDevKernel_AllReduce'), (3, "
    "'iteration 11');"
    "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (100, 600, 0, 7, 1, 1, 1), (400, 800, 0, 20, 2, "
    "2, 2), (1100, 1600, 0, 7, 3, 1, 1);"
    "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (1600, 1700, 0, 4096);"
    "INSERT INTO TARGET_INFO_GPU VALUES (0, 'NVIDIA A100-SXM4-80GB');";
constexpr const char* kSteps =
    "INSERT INTO NVTX_EVENTS VALUES (0, 990, 59, 'iteration 10', 1, NULL), (1000, 2000, 59, NULL, "
    "1, 3), (0, 50, 59, 'forward', 1, NULL), (2500, 3000, 59, 'iteration 10', 2, NULL);";

std::string database(const std::string& sql) {
  sqlite3* db = nullptr;
  REQUIRE(sqlite3_open(":memory:", &db) == SQLITE_OK);
  char* wrong = nullptr;
  sqlite3_exec(db, sql.c_str(), nullptr, nullptr, &wrong);
  INFO((wrong != nullptr ? wrong : ""));
  REQUIRE(wrong == nullptr);
  sqlite3_int64 size = 0;
  unsigned char* bytes = sqlite3_serialize(db, "main", &size, 0);
  std::string out(reinterpret_cast<const char*>(bytes), std::size_t(size));
  sqlite3_free(bytes);
  sqlite3_close(db);
  return out;
}

std::string error_of(const std::string& sql) {
  const auto read = parse_nsys_sqlite("report.sqlite", database(sql), 0);
  REQUIRE(!read);
  return format(read.error());
}

}  // namespace

TEST_CASE("a database of Nsight Systems is its NVTX steps and what they went to") {
  const std::string bytes = database(std::string(kSchema) + kRanges + kRows + kSteps);
  REQUIRE(is_sqlite(bytes));
  const auto read = parse_nsys_sqlite("report.sqlite", bytes, 0);
  REQUIRE(read);
  CHECK(read->device == "NVIDIA A100-SXM4-80GB");
  REQUIRE(read->steps.size() == 2);
  CHECK(read->steps[0] == Approx(1000e-9));  // to the begin of the next
  CHECK(read->parts.product.count() == Approx(500e-9));
  CHECK(read->parts.exposed_communication.count() == Approx(100e-9));  // 200 in one of two
  CHECK(read->parts.communication.count() == Approx(200e-9));
  CHECK(read->parts.memory.count() == Approx(50e-9));
  CHECK(read->parts.total().count() == Approx(1000e-9));
}

TEST_CASE("what a database lacks is said with its table, column or row") {
  const std::string all = std::string(kSchema) + kRanges + kRows;
  CHECK_THAT(error_of("CREATE TABLE x (y);"),
             Catch::Contains("no table CUPTI_ACTIVITY_KIND_KERNEL"));
  CHECK_THAT(error_of(std::string(kSchema) + kRows), Catch::Contains("no NVTX range"));
  CHECK_THAT(error_of(all), Catch::Contains("torch.cuda.nvtx.range_push"));
  CHECK_THAT(error_of(all + kSteps +
                      "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (9, 8, 0, 7, 1, 1, 1);"),
             Catch::Contains("CUPTI_ACTIVITY_KIND_KERNEL, row 4: it ends at 8"));
  CHECK_THAT(error_of(all + kSteps +
                      "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (8, 9, 0, 7, 1, 77, 1);"),
             Catch::Contains("its name 77 is not in StringIds"));
  CHECK_THAT(error_of("CREATE TABLE StringIds (id, value); CREATE TABLE "
                      "CUPTI_ACTIVITY_KIND_KERNEL (start, deviceId, demangledName);"),
             Catch::Contains("no such column: end"));
  std::string damaged = database(all + kSteps);
  for (std::size_t k = 100; k < damaged.size(); k += 7) damaged[k] = char(k);
  CHECK_FALSE(parse_nsys_sqlite("report.sqlite", damaged, 0));
}

TEST_CASE("a database without marked steps has them where it is told how many") {
  const std::string bytes = database(std::string(kSchema) + kRows);  // the product ran twice
  const auto read = parse_nsys_sqlite("report.sqlite", bytes, 2);
  REQUIRE(read);
  REQUIRE(read->steps.size() == 1);
  CHECK(read->steps[0] == Approx(1000e-9));
  CHECK(read->parts.product.count() == Approx(500e-9));
  const auto none = parse_nsys_sqlite("report.sqlite", bytes, 3);
  REQUIRE(!none);
  CHECK_THAT(format(none.error()), Catch::Contains("no kernel was launched 3 times"));
  // Marked steps go before.
  CHECK(parse_nsys_sqlite("report.sqlite",
                          database(std::string(kSchema) + kRanges + kRows + kSteps), 2)
            ->steps.size() == 2);
}

TEST_CASE("a database that Nsight Systems recorded is read") {
  // Nsight Systems 2022.1 (tests/data/README.md): `test` ran five times.
  std::ifstream file(RECKON_SOURCE_DIR "/tests/data/profiles/nsight-systems.sqlite",
                     std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  const auto read = parse_nsys_sqlite("report.sqlite", bytes, 5);
  REQUIRE(read);
  CHECK(read->device == "GeForce GTX 1060 with Max-Q Design");
  REQUIRE(read->steps.size() == 4);
  CHECK(read->steps[0] == Approx(708826e-9));
  CHECK(read->steps[3] == Approx(542427e-9));
  CHECK_THAT(format(parse_nsys_sqlite("report.sqlite", bytes, 0).error()),
             Catch::Contains("no NVTX range whose text says step"));
}

TEST_CASE("a database may not have its views run") {
  CHECK_FALSE(parse_nsys_sqlite(
      "report.sqlite",
      database("CREATE TABLE StringIds (id, value);"
               "CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS WITH RECURSIVE x(n) AS (SELECT 1 UNION "
               "ALL SELECT n + 1 FROM x) SELECT n AS start, n AS \"end\", 0 AS deviceId, 1 AS "
               "demangledName FROM x;"),
      0));
}

TEST_CASE("a table of kernels over time has steps where it is told how many") {
  // nsys stats --report cuda_gpu_trace --format csv; other lines may stand before it.
  const std::string text =
      "Processing [report.sqlite] with [cuda_gpu_trace.py]...\n"
      "Start (ns),Duration (ns),CorrId,GrdX,Bytes (MB),Device,Ctx,Strm,Name\n"
      "1000,400,1,8,,NVIDIA A100-SXM4-80GB (0),1,7,sm80_xmma_gemm_f16\n"
      "1500,100,2,8,,NVIDIA A100-SXM4-80GB (0),1,7,\"void adam<float, int>(float*)\"\n"
      "2000,400,3,8,,NVIDIA A100-SXM4-80GB (0),1,7,sm80_xmma_gemm_f16\n"
      "2400,100,4,,1.5,NVIDIA A100-SXM4-80GB (0),1,7,[CUDA memcpy Device-to-Device]\n"
      "2500,100,5,8,,NVIDIA A100-SXM4-80GB (0),1,7,\"void adam<float, int>(float*)\"\n"
      "3100,400,6,8,,NVIDIA A100-SXM4-80GB (0),1,7,sm80_xmma_gemm_f16\n"
      "3700,100,7,8,,NVIDIA A100-SXM4-80GB (0),1,7,\"void adam<float, int>(float*)\"\n";
  REQUIRE(is_nsys_csv(text));
  const auto read = parse_nsys_csv("trace.csv", text, 3);
  REQUIRE(read);
  CHECK(read->device == "NVIDIA A100-SXM4-80GB");
  REQUIRE(read->steps.size() == 2);
  CHECK(read->steps[0] == Approx(1000e-9));
  CHECK(read->steps[1] == Approx(1100e-9));
  CHECK(read->parts.product.count() == Approx(400e-9));
  CHECK(read->parts.memory.count() == Approx((100 + 200) / 2.0 * 1e-9));
  CHECK(parse_nsys_csv("trace.csv", text, 0)->steps.empty());
  CHECK_THAT(format(parse_nsys_csv("trace.csv", text, 5).error()),
             Catch::Contains("no kernel was launched 5 times"));
  const auto wrong = parse_nsys_csv(
      "trace.csv", "Start (ns),Duration (ns),Device,Name\n1,2,d (0),k\nx,2,d (0),k\n", 0);
  REQUIRE(!wrong);
  CHECK_THAT(format(wrong.error()), Catch::StartsWith("trace.csv:3: error: Start: 'x' is no time"));
}

TEST_CASE("a sum over kernels is what the time went to, and no step") {
  // nsys stats --report cuda_gpu_kern_sum --format csv
  const auto read = parse_nsys_csv("sum.csv",
                                   "Time (%),Total Time (us),Instances,Avg (us),Med (us),Min "
                                   "(us),Max (us),StdDev (us),Name\n"
                                   "60.0,600,3,200,200,200,200,0,sm80_xmma_gemm_f16\n"
                                   "30.0,300,3,100,100,100,100,0,flash_fwd_kernel\n"
                                   "10.0,100,3,33,33,33,33,0,ncclDevKernel_AllGather\n",
                                   0);
  REQUIRE(read);
  CHECK(read->steps.empty());
  CHECK(read->parts.product.count() == Approx(600e-6));
  CHECK(read->parts.attention.count() == Approx(300e-6));
  CHECK(read->parts.exposed_communication.count() == Approx(100e-6));
}

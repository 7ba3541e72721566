#include "sim/accuracy/published_runs.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

using namespace reckon;

namespace {

const std::string kHeader =
    "source,trust,accelerator,accelerators,model,precision,strategy,samples_per_second,"
    "batch_per_accelerator\n";

struct Read {
  PublishedCounts counts;
  std::vector<PublishedRun> rows;
  Diagnostics errors;
};

Read read(const std::string& text, const PublishedFilter& filter = {}) {
  static TextPool pool;
  Read result;
  auto counts = read_published_runs("m.csv", text, filter, pool,
                                    [&](const PublishedRun& m) { result.rows.push_back(m); });
  if (counts)
    result.counts = std::move(*counts);
  else
    result.errors = counts.error();
  return result;
}

bool told(const Diagnostics& problems, int line, const std::string& what) {
  for (const Diagnostic& d : problems)
    if (d.at.line == line && d.what == what) return true;
  return false;
}

}  // namespace

TEST_CASE("every row of measurements is delivered, not asked for, or counted with its reason") {
  const Read r = read(kHeader +
                          "s,A,P100-PCIE-16,1,resnet50,fp32,single,219,64\r\n"  // line 2: good
                          "s,A,P100-PCIE-16,1,resnet50,fp32,single,NaN,64\n"    // 3
                          "s,A,P100-PCIE-16,1,resnet50,fp32,single,-5,64\r"     // 4
                          "s,D,P100-PCIE-16,1,resnet50,fp32,single,219,64\n"    // 5
                          "s,A,P100-PCIE-16,1.5,resnet50,fp32,single,219,64\n"  // 6
                          "s,A,P100-PCIE-16,1,resnet50,fp32,single,,64\n"       // 7
                          "s,A,P100-PCIE-16,1,resnet50,fp32,single\n"           // 8
                          "s,A,,1,resnet50,fp32,single,219,64\n"                // 9
                          "s,A,P100-PCIE-16,1,resnet50,fp32,single,219 images/s,64\n"  // 10
                          "s,C,P100-PCIE-16,1,resnet50,fp32,single,219,64\n",  // 11: not asked for
                      {.trust = "AB", .source = ""});
  CHECK(r.counts.rows == 10);
  REQUIRE(r.rows.size() == 1);
  CHECK(r.rows[0].line == 2);
  CHECK(r.rows[0].measured.v == 219);
  CHECK(r.counts.filtered_out == 1);
  std::int64_t skipped = 0;
  for (const auto& [reason, rows] : r.counts.skipped.reasons) skipped += rows.count;
  CHECK(skipped == 8);
  CHECK(r.counts.skipped.count("samples_per_second is blank") == 1);
  CHECK(told(r.counts.problems, 3, "row skipped: samples_per_second is not a number"));
  CHECK(told(r.counts.problems, 4, "row skipped: samples_per_second is out of range"));
  CHECK(told(r.counts.problems, 5, "row skipped: trust is not A, B or C"));
  CHECK(told(r.counts.problems, 6, "row skipped: accelerators is not a whole number"));
  CHECK(told(r.counts.problems, 8, "row skipped: not as many fields as columns (9)"));
  CHECK(told(r.counts.problems, 9, "row skipped: accelerator is blank"));
  CHECK(told(r.counts.problems, 10, "row skipped: samples_per_second is not a number"));
  const auto hint = [&](int line) {
    for (const Diagnostic& d : r.counts.problems)
      if (d.at.line == line) return d.hint;
    return std::string("none");
  };
  CHECK(hint(10) ==
        "found '219 images/s'; a plain number of samples a second of the whole job is read");
  CHECK(hint(6) == "found '1.5'");
  CHECK(hint(9).empty());
}

TEST_CASE("a header that lacks columns is refused with all that it lacks") {
  const Read r = read("source,trust,accelerator,acelerators,model\ns,A,T4,1,resnet50\n");
  CHECK(r.rows.empty());
  for (const char* column : {"accelerators", "precision", "strategy", "samples_per_second"})
    CHECK(told(r.errors, 1, std::string("column '") + column + "' is missing"));
  CHECK(
      told(r.errors, 1, "unknown column 'acelerators' is not read; did you mean 'accelerators'?"));
}

TEST_CASE("columns that a row can do without are read as blank, and that is said") {
  const Read r = read(kHeader + "s,A,P100-PCIE-16,1,resnet50,fp32,single,219,64\n");
  REQUIRE(r.counts.problems.size() == 1);
  CHECK(r.counts.problems[0].severity == Severity::warning);
  CHECK(r.counts.problems[0].what.find("sequence_length") != std::string::npos);
  CHECK(r.rows.at(0).run.sequence_length == 0);
}

TEST_CASE("an empty file of measurements is refused") {
  CHECK(told(read("").errors, 0, "the file is empty"));
}

TEST_CASE("of a kind of mistake the first 20 are told and all are counted") {
  std::string text = kHeader;
  for (int i = 0; i < 1000; ++i) text += "s,A,P100-PCIE-16,1,resnet50,fp32,single,zero,64\n";
  const Read r = read(text);
  CHECK(r.counts.skipped.count("samples_per_second is not a number") == 1000);
  CHECK(r.counts.problems.size() == 21);  // and the warning about columns
}

TEST_CASE("rows of one source alone can be asked for") {
  const Read r = read(kHeader +
                          "s,A,P100-PCIE-16,1,resnet50,fp32,single,219,64\n"
                          "t,B,P100-PCIE-16,1,resnet50,fp32,single,219,64\n",
                      {.trust = "", .source = "t"});
  REQUIRE(r.rows.size() == 1);
  CHECK(r.rows[0].trust == 'B');
  CHECK(r.counts.filtered_out == 1);
}

TEST_CASE("tokens a second are scored where the tokens of a model's samples are known") {
  const Read r = read(
      "source,trust,accelerator,accelerators,model,precision,strategy,samples_per_second,"
      "batch_per_accelerator,value_raw,unit_raw,framework\n"
      "s,B,T4,1,gnmt,fp16,single,,128,5000,tokens/s,PyTorch\n"  // 25 of each language: 100
      "s,B,T4,1,transformer_xl_large,fp16,single,,4,3840,tokens/s,PyTorch\n"  // 384: 10
      "s,B,T4,1,transformer_xl_large,fp16,single,,4,2560,tokens/s,"
      "PyTorch NGC / DeepLearningExamples\n"                               // 256: 10
      "s,B,T4,1,transformer_big,fp16,single,,5120,640,tokens/s,PyTorch\n"  // 64: 10
      "s,B,T4,1,resnet50,fp16,single,,64,500,tokens/s,PyTorch\n"           // has none
      "s,B,T4,1,gnmt,fp16,single,,128,50,images/s,PyTorch\n"
      "s,B,T4,1,gnmt,fp16,single,7,128,5000,tokens/s,PyTorch\n");  // what is printed comes first
  REQUIRE(r.rows.size() == 5);
  CHECK(r.rows[0].measured.v == Approx(100));
  for (const std::size_t i : {1, 2, 3}) CHECK(r.rows[i].measured.v == Approx(10));
  CHECK(r.rows[4].measured.v == 7);
  CHECK(r.counts.skipped.count("samples_per_second is blank") == 2);
}

TEST_CASE("rows that are left out are counted by reason, with the line of the first") {
  SkippedRows rows, others;
  CHECK(rows.add("no model graph: x", 7) == 1);
  CHECK(rows.add("no model graph: x", 9) == 2);
  others.add("no model graph: x", 3);
  others.add("is blank", 4);
  rows.add(others);
  CHECK(rows.count("no model graph: x") == 3);
  CHECK(rows.reasons.at("no model graph: x").first_line == 3);
  CHECK(rows.reasons.at("is blank").first_line == 4);
  CHECK(rows.count("another") == 0);
}

#include "executor/serve/predict_body.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/base/check.h"

namespace reckon {
namespace {

using Json = nlohmann::json;

/// Lists in lists; tensors of models have far fewer dimensions.
constexpr int kDeepest = 64;

/// Reads a request as it is parsed: a body that is too deep or holds too many instances costs no
/// more than what of it was read.
class InstanceReader : public Json::json_sax_t {
 public:
  explicit InstanceReader(std::size_t most) : most_(most) {}

  const std::string& error() const { return error_; }
  std::vector<std::vector<float>> take() { return std::move(instances_); }

  bool null() override { return no_number(); }
  bool boolean(bool) override { return no_number(); }
  bool number_integer(number_integer_t value) override { return number(float(value)); }
  bool number_unsigned(number_unsigned_t value) override { return number(float(value)); }
  bool number_float(number_float_t value, const string_t&) override { return number(float(value)); }
  bool string(string_t&) override { return no_number(); }
  bool binary(binary_t&) override { return no_number(); }

  bool start_object(std::size_t) override {
    if (depth_ > 0 && !no_number()) return false;
    return deeper();
  }
  bool key(string_t& name) override {
    if (depth_ != 1) return true;
    reading_ = name == "instances";
    if (!reading_) return true;
    instances_.clear();
    given_ = true;
    return true;
  }
  bool end_object() override {
    if (--depth_ > 0) return true;
    return given_ || fail(kNone);
  }
  bool start_array(std::size_t) override {
    if (depth_ == 0) return fail(kNone);
    if (reading_ && depth_ == kItems && !begin_instance()) return false;
    return deeper();
  }
  bool end_array() override {
    --depth_;
    if (reading_ && depth_ == 1 && instances_.empty()) return fail(kNoList);
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const Json::exception&) override {
    return fail("the body is no JSON");
  }

 private:
  static constexpr int kItems = 2;  // depth at which instances begin
  static constexpr const char* kNone =
      "the body has no 'instances', such as {\"instances\": [[0.5, 1]]}";
  static constexpr const char* kNoList = "'instances' is no list with at least one instance";

  bool fail(std::string what) {
    error_ = std::move(what);
    return false;
  }
  bool deeper() {
    return ++depth_ <= kDeepest ||
           fail(fmt::format("the body is more than {} lists deep", kDeepest));
  }
  bool begin_instance() {
    if (instances_.size() == most_)
      return fail(fmt::format("at most {} instances at once (--batch-max)", most_));
    instances_.emplace_back();
    return true;
  }
  /// A value that is neither number nor list.
  bool no_number() {
    if (depth_ == 0) return fail(kNone);
    if (!reading_) return true;
    if (depth_ == 1) return fail(kNoList);
    return fail(fmt::format("instance {} is not made of numbers alone",
                            instances_.size() - (depth_ == kItems ? 0 : 1)));
  }
  bool number(float value) {
    if (!reading_ || depth_ < kItems || !std::isfinite(value)) return no_number();
    if (depth_ == kItems && !begin_instance()) return false;
    instances_.back().push_back(value);
    return true;
  }

  std::size_t most_;
  std::vector<std::vector<float>> instances_;
  std::string error_;
  int depth_ = 0;         // open lists and objects
  bool reading_ = false;  // within the value of 'instances'
  bool given_ = false;
};

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace

tl::expected<std::vector<std::vector<float>>, std::string> parse_instances(std::string_view body,
                                                                           std::size_t most) {
  InstanceReader reader(most);
  if (!Json::sax_parse(body, &reader)) return tl::make_unexpected(reader.error());
  return reader.take();
}

std::string predictions_text(const std::vector<std::vector<float>>& answers) {
  std::string out = "{\"predictions\":[";
  for (std::size_t k = 0; k < answers.size(); ++k) {
    out += k == 0 ? "[" : ",[";
    for (std::size_t i = 0; i < answers[k].size(); ++i) {
      if (i > 0) out += ',';
      RECKON_CHECK(std::isfinite(answers[k][i]));  // JSON has neither infinity nor NaN
      out += fmt::format("{}", answers[k][i]);
    }
    out += ']';
  }
  return out + "]}\n";
}

std::string error_text(std::string_view what) { return dump({{"error", what}}); }

std::string status_text(std::int64_t version, bool ending) {
  const Json status = {{"version", std::to_string(version)},
                       {"state", ending ? "UNLOADING" : "AVAILABLE"},
                       {"status", {{"error_code", "OK"}, {"error_message", ""}}}};
  return dump({{"model_version_status", Json::array({status})}});
}

}  // namespace reckon

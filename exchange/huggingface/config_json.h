#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "sim/base/diagnostic.h"
#include "sim/model/graph.h"

// The keys of one JSON object, asked for by name and type; what is wrong is collected, at the key's
// place in the text. Only .cpp files of this folder include this.
namespace reckon {

class ConfigJson {
 public:
  /// Not an object, or no JSON at all: one mistake, and nothing is found in it.
  ConfigJson(std::string_view text, std::string file);
  ConfigJson(const ConfigJson&) = delete;  // sections point at the mistakes of the whole
  ConfigJson& operator=(const ConfigJson&) = delete;

  /// The object behind a key, whose mistakes are those of this one; absent: nothing is found in it.
  ConfigJson section(const std::string& key);

  /// The key is there, be it null.
  bool present(const std::string& key) const { return readable() && json_.contains(key); }
  /// Whole numbers of 1 and above, or `least`. Absent or null: `otherwise`; nullopt: it is missing.
  std::int64_t number(const std::string& key, std::optional<std::int64_t> otherwise,
                      std::int64_t least = 1);
  /// Any number, as it stands. Absent or null: `otherwise`.
  double real(const std::string& key, double otherwise);
  bool flag(const std::string& key, bool otherwise);
  std::string text(const std::string& key, const std::string& otherwise);
  ActivationKind activation(const std::string& key, const std::string& otherwise);
  /// Entries of a list or of an object; nullopt: absent.
  std::optional<std::size_t> entries(const std::string& key);
  /// The first text of a list of texts; "" where there is none.
  std::string first_text(const std::string& key);
  /// A list of texts, of whole numbers of 0 and above; empty: absent.
  std::vector<std::string> texts(const std::string& key);
  std::vector<std::int64_t> numbers(const std::string& key);

  void mistake(const std::string& key, std::string what, std::string hint = {});
  bool readable() const { return json_.is_object(); }
  Diagnostics& mistakes() { return *mistakes_; }

 private:
  ConfigJson(const ConfigJson& whole, const std::string& key, nlohmann::json json,
             Diagnostics* mistakes);
  const nlohmann::json* find(const std::string& key) const;
  SourcePlace place_of(std::string_view key) const;
  SourcePlace place_at(std::size_t byte) const;
  void wrong_type(const std::string& key, const nlohmann::json& value, std::string_view wanted);

  std::string_view source_;
  std::string file_;
  std::string section_;        // "text_config."
  std::size_t begins_at_ = 0;  // of the section, in the text
  nlohmann::json json_;
  Diagnostics own_;
  Diagnostics* mistakes_ = &own_;
};

}  // namespace reckon

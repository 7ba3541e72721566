#pragma once
#include <map>
#include <nlohmann/json.hpp>
#include <string>

namespace reckon::test {

/// The charts' specifications that a page holds, by id.
inline std::map<std::string, nlohmann::json> specs_of(const std::string& page) {
  std::map<std::string, nlohmann::json> out;
  const std::string open = "<script type=\"application/json\" id=\"spec-";
  for (std::size_t at = page.find(open); at != std::string::npos; at = page.find(open, at)) {
    at += open.size();
    const std::size_t quote = page.find('"', at), begin = page.find('>', at) + 1;
    const std::size_t end = page.find("</script>", begin);
    out[page.substr(at, quote - at)] = nlohmann::json::parse(page.substr(begin, end - begin));
  }
  return out;
}

}  // namespace reckon::test

#ifdef RECKON_WITH_S3
#include "executor/data/store/s3_answers.h"

#include <expat.h>
#include <fmt/format.h>

#include <charconv>
#include <memory>
#include <type_traits>

namespace reckon::data {
namespace {

constexpr std::size_t kDeepest = 16;  // elements in elements; answers have three levels

/// The texts of elements by their path, "ListBucketResult/Contents/Key", as they end.
class XmlTexts {
 public:
  virtual ~XmlTexts() = default;
  virtual void ended(const std::string& path, const std::string& text) = 0;

  /// "" or what is wrong.
  std::string parse(std::string_view xml) {
    const std::unique_ptr<std::remove_pointer_t<XML_Parser>, decltype(&XML_ParserFree)> parser(
        XML_ParserCreate(nullptr), &XML_ParserFree);
    if (!parser) return "no memory";
    parser_ = parser.get();
    XML_SetUserData(parser_, this);
    XML_SetElementHandler(parser_, &begin, &end);
    XML_SetCharacterDataHandler(parser_, &characters);
    constexpr std::size_t kLongest = std::size_t{1} << 30;  // expat counts in int
    if (xml.size() > kLongest) return "is too long";
    if (XML_Parse(parser_, xml.data(), static_cast<int>(xml.size()), XML_TRUE) == XML_STATUS_OK)
      return "";
    return fmt::format("line {}: {}", XML_GetCurrentLineNumber(parser_),
                       XML_ErrorString(XML_GetErrorCode(parser_)));
  }

 private:
  static void begin(void* self, const XML_Char* name, const XML_Char**) {
    auto& me = *static_cast<XmlTexts*>(self);
    if (me.ends_.size() == kDeepest) {
      XML_StopParser(me.parser_, XML_FALSE);
      return;
    }
    me.ends_.push_back(me.path_.size());
    if (!me.path_.empty()) me.path_ += '/';
    me.path_ += name;
    me.text_.clear();
  }
  static void end(void* self, const XML_Char*) {
    auto& me = *static_cast<XmlTexts*>(self);
    me.ended(me.path_, me.text_);
    me.path_.resize(me.ends_.back());
    me.ends_.pop_back();
    me.text_.clear();
  }
  static void characters(void* self, const XML_Char* text, int length) {
    static_cast<XmlTexts*>(self)->text_.append(text, static_cast<std::size_t>(length));
  }

  XML_Parser parser_ = nullptr;
  std::string path_, text_;
  std::vector<std::size_t> ends_;  // of the paths above
};

class ListTexts final : public XmlTexts {
 public:
  ObjectList list;
  std::string wrong;
  bool is_list = false;

  void ended(const std::string& path, const std::string& text) override {
    if (path == "ListBucketResult/Contents/Key") {
      object_.name = text;
    } else if (path == "ListBucketResult/Contents/Size") {
      const auto [end, error] =
          std::from_chars(text.data(), text.data() + text.size(), object_.size);
      if (error != std::errc() || end != text.data() + text.size() || object_.size < 0)
        wrong = fmt::format("the size of {} is '{}'", object_.name, text);
    } else if (path == "ListBucketResult/Contents/ETag") {
      object_.version = text;
    } else if (path == "ListBucketResult/Contents") {
      if (object_.name.empty()) wrong = "an object has no key";
      list.objects.push_back(std::move(object_));
      object_ = {};
    } else if (path == "ListBucketResult/NextContinuationToken") {
      list.next = text;
    } else if (path == "ListBucketResult/NextMarker") {
      list.marker = text;
    } else if (path == "ListBucketResult/IsTruncated") {
      list.truncated = text == "true";
    } else if (path == "ListBucketResult") {
      is_list = true;
    }
  }

 private:
  StoredObject object_;
};

class ErrorTexts final : public XmlTexts {
 public:
  StoreWords words;
  void ended(const std::string& path, const std::string& text) override {
    if (path == "Error/Code") words.code = text;
    if (path == "Error/Message") words.message = text;
    if (path == "Error/Region") words.region = text;
  }
};

}  // namespace

tl::expected<ObjectList, std::string> parse_object_list(std::string_view xml) {
  ListTexts texts;
  if (std::string wrong = texts.parse(xml); !wrong.empty()) return tl::unexpected(std::move(wrong));
  if (!texts.wrong.empty()) return tl::unexpected(std::move(texts.wrong));
  if (!texts.is_list) return tl::unexpected<std::string>("is no list of objects");
  return std::move(texts.list);
}

StoreWords parse_store_error(std::string_view xml) {
  ErrorTexts texts;
  if (!texts.parse(xml).empty() || texts.words.code.empty()) return {};
  return std::move(texts.words);
}

}  // namespace reckon::data

#endif

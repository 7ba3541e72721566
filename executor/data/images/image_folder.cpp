#include <fmt/format.h>

#include <algorithm>

#include "executor/data/sources.h"
#include "sim/base/text/lower_case.h"

// A folder a class, as torchvision's ImageFolder has it.
namespace reckon::data {
namespace {

bool is_image(std::string_view name) {
  const std::string lower = lower_case(name);
  return lower.ends_with(".jpg") || lower.ends_with(".jpeg") || lower.ends_with(".png");
}

class ImageFolder final : public ImageSource {
 public:
  ImageFolder(std::unique_ptr<Store> opened, const SampleFormat& format, const ImageRecipe& recipe,
              const std::string& where)
      : ImageSource(std::move(opened), format, recipe) {
    if (!store().is_folder())
      throw DataError(
          fmt::format("{}: is no folder: one with a folder a class is expected", where));
    std::vector<std::string> classes;  // in order, as the objects are
    bool has_images = true;
    const auto require_images = [&] {
      if (!has_images)
        throw DataError(
            fmt::format("{}: class {} has no .jpg, .jpeg or .png files", where, classes.back()));
    };
    // By name alone: '/' is not the least of the characters that a name may have.
    std::vector<std::pair<std::string, const StoredObject*>> by_class;
    for (const StoredObject& object : store().objects()) {
      const std::size_t slash = object.name.find('/');
      if (slash != std::string::npos) by_class.emplace_back(object.name.substr(0, slash), &object);
    }
    std::ranges::stable_sort(by_class, {}, [](const auto& entry) { return entry.first; });
    for (const auto& [name, object] : by_class) {
      if (classes.empty() || classes.back() != name) {
        require_images();
        classes.push_back(name);
        has_images = false;
      }
      if (!is_image(object->name)) continue;
      has_images = true;
      images_.push_back({object, std::ssize(classes) - 1});
    }
    require_images();
    if (images_.empty())
      throw DataError(fmt::format(
          "{}: holds no images: one folder a class with .jpg, .jpeg or .png files is expected",
          where));
    const std::int64_t known = format.targets[0].ids[0].below;
    if (std::ssize(classes) > known)
      throw DataError(
          fmt::format("{}: holds {} classes, the model has {}", where, classes.size(), known));
  }
  std::int64_t samples() const override { return std::ssize(images_); }

 private:
  struct Entry {
    const StoredObject* object;  // of the store
    std::int64_t label;
  };
  EncodedImage fetch(std::int64_t index) const override {
    const Entry& entry = images_[static_cast<std::size_t>(index)];
    return {bytes_of(*entry.object, 0, entry.object->size), entry.label,
            store().place_of(*entry.object)};
  }

  std::vector<Entry> images_;
};

}  // namespace

std::unique_ptr<DataSource> open_image_folder(std::unique_ptr<Store> store,
                                              const SampleFormat& format, const ImageRecipe& recipe,
                                              const std::string& where) {
  return std::make_unique<ImageFolder>(std::move(store), format, recipe, where);
}

}  // namespace reckon::data

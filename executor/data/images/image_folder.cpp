#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "executor/data/faults.h"
#include "executor/data/sources.h"
#include "executor/train/data/classes.h"
#include "executor/train/data/digest.h"
#include "sim/base/text/lower_case.h"
#include "sim/scenario/spec/workload.h"

// A folder a class, as torchvision's ImageFolder has it.
namespace reckon::data {
namespace {

bool ends_with_one_of(std::string_view name, std::initializer_list<std::string_view> endings) {
  const std::string lower = lower_case(name);
  return std::ranges::any_of(endings, [&](auto ending) { return lower.ends_with(ending); });
}
bool is_image(std::string_view name) { return ends_with_one_of(name, {".jpg", ".jpeg", ".png"}); }
/// What others would take for a sample.
bool is_other_image(std::string_view name) {
  return ends_with_one_of(name, {".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm", ".pgm"});
}

class ImageFolder final : public ImageSource {
 public:
  ImageFolder(std::unique_ptr<Store> opened, const SampleFormat& format, const ImageRecipe& recipe,
              const std::string& where, const std::vector<std::string>& training)
      : ImageSource(std::move(opened), format, recipe), classes_(training) {
    if (!store().is_folder())
      throw DataError(
          fmt::format("{}: is no folder: one with a folder a class is expected", where));
    const auto by_class = images_by_class(where);
    std::vector<std::string> names;
    Faults faults(where);
    for (const auto& [name, images] : by_class) {
      names.push_back(name);
      if (images.empty())
        faults.add(fmt::format("{}: class {} has no .jpg, .jpeg or .png files", where, name));
    }
    if (names.empty())
      throw DataError(fmt::format(
          "{}: holds no images: one folder a class with .jpg, .jpeg or .png files is expected",
          where));
    std::vector<std::int64_t> numbers;
    faults.collect([&] { numbers = class_numbers(where, names, training); });
    const std::int64_t known = format.targets[0].ids[0].below;
    if (training.empty() && std::ssize(names) > known)
      faults.add(fmt::format("{}: holds {} classes, the model has {}", where, names.size(), known));
    faults.tell();
    for (auto number = numbers.begin(); const auto& [name, images] : by_class) {
      for (const StoredObject* image : images) images_.push_back({image, *number});
      ++number;
    }
    if (!training.empty()) return;
    classes_ = std::move(names);
    if (std::string why = why_fewer_classes(where, std::ssize(classes_), known); !why.empty())
      warn(std::move(why));
  }
  std::int64_t samples() const override { return std::ssize(images_); }
  std::vector<std::string> classes() const override { return classes_; }
  std::string digest() const override {
    DataDigest digest;
    for (const Entry& entry : images_)
      digest.add(entry.object->name).add(entry.object->size).add(entry.label);
    return digest.text();
  }

 private:
  struct Entry {
    const StoredObject* object;  // of the store
    std::int64_t label;
  };

  /// By name of the class, also of classes that have none: folders of this machine may be empty.
  std::map<std::string, std::vector<const StoredObject*>> images_by_class(
      const std::string& where) {
    std::map<std::string, std::vector<const StoredObject*>> by_class;
    if (!is_store_location(where))
      for (std::string& name : folders_in(where)) by_class.try_emplace(std::move(name));
    std::int64_t others = 0;
    const StoredObject* first_other = nullptr;
    for (const StoredObject& object : store().objects()) {
      const std::size_t slash = object.name.find('/');
      if (slash == std::string::npos || is_hidden(object.name)) continue;
      auto& images = by_class[object.name.substr(0, slash)];
      if (is_image(object.name)) images.push_back(&object);
      if (!is_other_image(object.name)) continue;
      if (others++ == 0) first_other = &object;
    }
    if (others > 0)
      warn(
          fmt::format("{} file{} left out that {} neither JPEG nor PNG, the first is {}: convert "
                      "what you want to train on",
                      others, others == 1 ? " is" : "s are", others == 1 ? "is" : "are",
                      store().place_of(*first_other)));
    return by_class;
  }

  EncodedImage fetch(std::int64_t index) const override {
    const Entry& entry = images_[static_cast<std::size_t>(index)];
    return {bytes_of(*entry.object, 0, entry.object->size), entry.label,
            store().place_of(*entry.object)};
  }

  std::vector<Entry> images_;
  std::vector<std::string> classes_;
};

}  // namespace

std::unique_ptr<DataSource> open_image_folder(std::unique_ptr<Store> store,
                                              const SampleFormat& format, const ImageRecipe& recipe,
                                              const std::string& where,
                                              const std::vector<std::string>& classes) {
  return std::make_unique<ImageFolder>(std::move(store), format, recipe, where, classes);
}

}  // namespace reckon::data

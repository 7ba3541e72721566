#pragma once
#include "executor/data/images/image_source.h"

// One function a format; open_samples() chooses. `where`: the location, for messages. All throw
// DataError. `classes`: of the training set, where this is one for validation.
namespace reckon::data {

std::unique_ptr<DataSource> open_image_folder(std::unique_ptr<Store> store,
                                              const SampleFormat& format, const ImageRecipe& recipe,
                                              const std::string& where,
                                              const std::vector<std::string>& classes);
std::unique_ptr<DataSource> open_webdataset(std::unique_ptr<Store> store,
                                            const SampleFormat& format, const ImageRecipe& recipe,
                                            const std::string& where);
std::unique_ptr<DataSource> open_tfrecord(std::unique_ptr<Store> store, const SampleFormat& format,
                                          const ImageRecipe& recipe, const std::string& where);

std::unique_ptr<DataSource> open_raw_tokens(std::unique_ptr<Store> store,
                                            const SampleFormat& format, const std::string& where);
std::unique_ptr<DataSource> open_numpy(std::unique_ptr<Store> store, const SampleFormat& format,
                                       const std::string& where);
std::unique_ptr<DataSource> open_megatron(std::unique_ptr<Store> store, const SampleFormat& format,
                                          const std::string& where);

}  // namespace reckon::data

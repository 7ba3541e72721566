#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

// Classes that are folders.
namespace reckon::data {

/// Its name begins with '.', or that of a folder that it lies in: what editors, notebooks and file
/// managers leave.
bool is_hidden(std::string_view name);

/// Names of the folders in `folder` that are not hidden, in order; links are followed. Throws
/// DataError where it cannot be read.
std::vector<std::string> folders_in(const std::filesystem::path& folder);

/// The number of each of `names`: its place among them, or among those of `training`, where there
/// are any: a validation set need not have all. Throws DataError with the names that training does
/// not have.
std::vector<std::int64_t> class_numbers(const std::string& where,
                                        const std::vector<std::string>& names,
                                        const std::vector<std::string>& training);

/// A warning of outputs of the model that no class of a training set is for; "": there are none.
std::string why_fewer_classes(const std::string& where, std::int64_t classes, std::int64_t outputs);

}  // namespace reckon::data

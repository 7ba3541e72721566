#include "executor/cuda/libraries/loaded_library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

namespace reckon::cuda {

LoadedLibrary::LoadedLibrary(std::string name, const char* found_at) : name_(std::move(name)) {
  for (const char* at : {name_.c_str(), found_at}) {
    library_ = ::dlopen(at, RTLD_NOW | RTLD_LOCAL);
    if (library_ != nullptr) {
      problem_.clear();
      return;
    }
    if (problem_.empty()) problem_ = ::dlerror();  // of the search: what a user can mend
  }
}

std::string LoadedLibrary::path() const {
  const ::link_map* map = nullptr;
  const bool known = library_ != nullptr && ::dlinfo(library_, RTLD_DI_LINKMAP, &map) == 0;
  return known ? map->l_name : "";
}

void* LoadedLibrary::address_of(const char* name) {
  if (library_ == nullptr) return nullptr;
  void* found = ::dlsym(library_, name);
  if (found == nullptr && problem_.empty())
    problem_ = fmt::format("{} has no {}: it is older than what this was built with", name_, name);
  return found;
}

}  // namespace reckon::cuda

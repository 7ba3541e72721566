#include "sim/model/names.h"

#include "sim/base/text/names_like.h"
#include "sim/model/zoo/zoo.h"

namespace reckon {

std::string models_like(const std::string& name) {
  return names_like(name, zoo_names(), "models of the zoo", "reckon model list");
}

}  // namespace reckon

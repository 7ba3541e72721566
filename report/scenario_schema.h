#pragma once
#include <string>

namespace reckon {

/// The grammar of scenario files as a JSON Schema (draft 7: what editors read), made from the
/// reader's own tables of fields. It holds what a table says: keys, forms, limits, required keys.
/// Rules between keys ("exactly one of epochs, samples, ...") are the reader's alone, so a file
/// that the schema accepts may still be refused; one that it refuses is refused by the reader as
/// well. Limits of values with a unit are not in it.
std::string scenario_schema();

}  // namespace reckon

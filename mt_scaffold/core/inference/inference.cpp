#include "inference/inference.hpp"

#include "errors.hpp"

namespace mt_scaffold {

const InferenceKind& inference_named(std::string_view name) {
  std::string names;
  for (const InferenceKind& kind : kInferences) {
    if (kind.name == name) return kind;
    names.append(names.empty() ? "" : ", ").append(kind.name);
  }
  throw UsageError("there is no inference '" + std::string(name) + "'; choose one of " + names);
}

}  // namespace mt_scaffold

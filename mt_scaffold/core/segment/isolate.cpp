#include "segment/isolate.hpp"

#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

#include "io/shared_state.hpp"
#include "text/hashing.hpp"

namespace mt_scaffold {

Isolate remembering(Isolate isolate) {
  constexpr size_t kRememberedWords = size_t{1} << 18;
  auto memory = std::make_shared<std::unordered_map<std::string, std::vector<WordPart>, StringHash>>();
  return [isolate = std::move(isolate), memory = std::move(memory)](std::string_view word) {
    if (word.size() > kLongestRememberedWord) return isolate(word);
    const std::string key(word);
    {
      std::lock_guard lock(shared_state);
      const auto found = memory->find(key);
      if (found != memory->end()) return found->second;
    }
    std::vector<WordPart> parts = isolate(word);
    std::lock_guard lock(shared_state);
    if (memory->size() >= kRememberedWords) memory->clear();
    memory->emplace(key, parts);
    return parts;
  };
}

}  // namespace mt_scaffold

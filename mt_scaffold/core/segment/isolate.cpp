#include "segment/isolate.hpp"

#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

#include "io/shared_state.hpp"
#include "text/hashing.hpp"

namespace mt_scaffold {

namespace {

constexpr size_t kRememberedWords = size_t{1} << 18;

class Memory {
 public:
  explicit Memory(Isolate isolate) : isolate_(std::move(isolate)) {}

  std::vector<WordPart> operator()(std::string_view word) {
    if (word.size() > kLongestRememberedWord) return isolate_(word);
    const std::string key(word);
    {
      std::lock_guard lock(shared_state);
      const auto found = parts_.find(key);
      if (found != parts_.end()) return found->second;
    }
    std::vector<WordPart> parts = isolate_(word);
    std::lock_guard lock(shared_state);
    if (parts_.size() >= kRememberedWords) parts_.clear();
    parts_.emplace(key, parts);
    return parts;
  }

 private:
  const Isolate isolate_;
  std::unordered_map<std::string, std::vector<WordPart>, StringHash> parts_;
};

}  // namespace

Isolate remembering(Isolate isolate) {
  return [memory = std::make_shared<Memory>(std::move(isolate))](std::string_view word) { return (*memory)(word); };
}

}  // namespace mt_scaffold

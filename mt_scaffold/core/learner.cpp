#include "learner.hpp"

#include <string_view>

#include "learning_text.hpp"
#include "merge_queue.hpp"
#include "tokens.hpp"

namespace mt_scaffold {

namespace {

class Learner {
 public:
  Learner(WordCounts words, const LearnOptions& options)
      : scaffold_(options.algorithm == Algorithm::kScaffold),
        symbols_(options.symbols),
        text_(std::move(words)),
        tokens_(text_.tokens),
        queue_(text_.tokens, text_.pairs, options.min_frequency) {}

  LearnResult learn(const OnMerge& on_merge, const Tick& tick) {
    LearnResult result;
    for (uint64_t iteration = 0; (scaffold_ ? normal_ : merges_.size()) < symbols_; ++iteration) {
      if (iteration % kIterationsPerTick == 0) tick(merges_.size());
      queue_.settle();
      if (queue_.waiting_is_head()) {
        tokens_[queue_.pop_waiting()].state = TokenState::kNormal;
        ++normal_;
        ++result.restored;
      } else if (queue_.has_pair()) {
        merge(on_merge);
      } else {
        result.exhausted = true;
        break;
      }
    }
    result.merges.reserve(merges_.size());
    for (const Made& made : merges_)
      result.merges.push_back({std::string(tokens_[made.left].text), std::string(tokens_[made.right].text),
                               tokens_[made.token].state == TokenState::kWaiting});
    for (const TokenInfo& info : tokens_) result.scaffold += info.state == TokenState::kWaiting;
    return result;
  }

 private:
  struct Made {
    Token left, right, token;
  };
  static constexpr uint64_t kIterationsPerTick = 256;

  void merge(const OnMerge& on_merge) {
    const MergeQueue::PairEntry top = queue_.pop_pair();
    const Token a = text_.pairs[top.pair].left, b = text_.pairs[top.pair].right;
    if (on_merge) on_merge(merges_.size(), std::string(tokens_[a].text), std::string(tokens_[b].text), top.count);
    merged_text_.assign(tokens_[a].text).append(tokens_[b].text);
    const Token token = tokens_.intern(merged_text_);
    merges_.push_back({a, b, token});
    text_.replace(top.pair, token);
    text_.for_each_raised_pair([&](uint32_t pair) { queue_.push_pair(pair); });
    make_normal(token, a, b);
    if (scaffold_) mark_scaffold(a, b);
  }

  void make_normal(Token token, Token left, Token right) {
    TokenInfo& info = tokens_[token];
    if (info.left == kNoToken) {
      info.left = left;
      info.right = right;
      if (is_base_symbol(info.text)) info.state = TokenState::kBase;
    }
    if (info.state == TokenState::kUnmade || info.state == TokenState::kWaiting) {
      info.state = TokenState::kNormal;
      ++normal_;
    }
  }

  // What Scaffold-BPE adds to BPE: a child that is now rarer than the next candidate becomes scaffold.
  void mark_scaffold(Token left, Token right) {
    const int64_t head = queue_.head_frequency();
    for (const Token child : {left, right}) {
      TokenInfo& info = tokens_[child];
      if (info.state != TokenState::kNormal || info.frequency >= head) continue;
      info.state = TokenState::kWaiting;
      --normal_;
      if (info.frequency > 0) queue_.push_waiting(child);
    }
  }

  const bool scaffold_;
  const uint64_t symbols_;
  LearningText text_;
  Tokens& tokens_;
  MergeQueue queue_;
  std::vector<Made> merges_;
  uint64_t normal_ = 0;  // normal merged tokens
  std::string merged_text_;
};

}  // namespace

LearnResult learn(WordCounts words, const LearnOptions& options, const OnMerge& on_merge, const Tick& tick) {
  return Learner(std::move(words), options).learn(on_merge, tick);
}

}  // namespace mt_scaffold

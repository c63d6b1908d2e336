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
        alphabet_(options.alphabet),
        symbols_(options.symbols),
        given_(options.given),
        text_(std::move(words), options.alphabet),
        tokens_(text_.tokens),
        queue_(text_.tokens, text_.pairs, options.min_frequency) {}

  LearnResult learn(const OnStep& on_step, const Tick& tick) {
    LearnResult result;
    replay(given_);
    for (uint64_t iteration = 0; (scaffold_ ? normal_ : merges_.size()) < symbols_; ++iteration) {
      if (iteration % kIterationsPerTick == 0) tick(merges_.size());
      queue_.settle();
      Step step;
      if (queue_.waiting_is_head()) {
        const Token token = queue_.pop_waiting();
        tokens_[token].state = TokenState::kNormal;
        ++normal_;
        ++result.restored;
        step.returned = counted(token);
      } else if (queue_.has_pair()) {
        merge(step);
      } else {
        result.exhausted = true;
        break;
      }
      if (on_step) on_step(step);
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

  // Brings the text to where learning these merges would have left it. The queue takes in pairs only later.
  void replay(const std::vector<Merge>& given) {
    for (const Merge& merge : given) {
      const Token a = tokens_.intern(merge.left), b = tokens_.intern(merge.right);
      merged_text_.assign(merge.left).append(merge.right);
      const Token token = tokens_.intern(merged_text_);
      merges_.push_back({a, b, token});
      text_.replace(text_.pairs.find_or_add(a, b), token);
      make_normal(token, a, b);
    }
  }

  CountedToken counted(Token token) const { return {tokens_[token].text, tokens_[token].frequency}; }

  void merge(Step& step) {
    const MergeQueue::PairEntry top = queue_.pop_pair();
    const Token a = text_.pairs[top.pair].left, b = text_.pairs[top.pair].right;
    step.left = tokens_[a].text;
    step.right = tokens_[b].text;
    step.frequency = top.count;
    merged_text_.assign(tokens_[a].text).append(tokens_[b].text);
    const Token token = tokens_.intern(merged_text_);
    merges_.push_back({a, b, token});
    text_.replace(top.pair, token);
    text_.for_each_raised_pair([&](uint32_t pair) { queue_.push_pair(pair); });
    if (tokens_[token].state == TokenState::kWaiting) step.returned = counted(token);
    make_normal(token, a, b);
    if (scaffold_) mark_scaffold(a, b, step);
  }

  void make_normal(Token token, Token left, Token right) {
    TokenInfo& info = tokens_[token];
    if (info.left == kNoToken) {
      info.left = left;
      info.right = right;
      if (is_base_symbol(info.text, alphabet_)) info.state = TokenState::kBase;
    }
    if (info.state == TokenState::kUnmade || info.state == TokenState::kWaiting) {
      info.state = TokenState::kNormal;
      ++normal_;
    }
  }

  // What Scaffold-BPE adds to BPE: a child that is now rarer than the next candidate becomes scaffold.
  void mark_scaffold(Token left, Token right, Step& step) {
    const int64_t head = queue_.head_frequency();
    step.head = head;
    for (const Token child : {left, right}) {
      TokenInfo& info = tokens_[child];
      if (info.state != TokenState::kNormal || info.frequency >= head) continue;
      info.state = TokenState::kWaiting;
      --normal_;
      (child == left ? step.left_marked : step.right_marked) = info.frequency;
      if (info.frequency > 0) queue_.push_waiting(child);
    }
  }

  const bool scaffold_;
  const Alphabet alphabet_;
  const uint64_t symbols_;
  const std::vector<Merge>& given_;
  LearningText text_;
  Tokens& tokens_;
  MergeQueue queue_;
  std::vector<Made> merges_;
  uint64_t normal_ = 0;  // normal merged tokens
  std::string merged_text_;
};

}  // namespace

LearnResult learn(WordCounts words, const LearnOptions& options, const OnStep& on_step, const Tick& tick) {
  return Learner(std::move(words), options).learn(on_step, tick);
}

}  // namespace mt_scaffold

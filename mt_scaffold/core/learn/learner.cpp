#include "learn/learner.hpp"

#include <algorithm>
#include <optional>
#include <string_view>

#include "io/interruption.hpp"
#include "learn/learning_text.hpp"
#include "learn/merge_queue.hpp"
#include "learn/tokens.hpp"

namespace mt_scaffold {

namespace {

class Learner {
 public:
  Learner(WordCounts words, const LearnOptions& options)
      : options_(options),
        text_(std::move(words), options.alphabet, options.algorithm == Algorithm::kPicky),
        tokens_(text_.tokens),
        queue_(text_.tokens, text_.pairs, options.min_frequency) {}

  LearnResult learn(const OnStep& on_step, const Tick& tick) {
    const Interruptible interruptible([&] { tick(merges_.size()); });
    LearnResult result;
    replay();
    for (uint64_t iteration = 0; (options_.algorithm == Algorithm::kBpe ? merges_.size() : normal_) < options_.symbols;
         ++iteration) {
      if (iteration % kIterationsPerTick == 0) tick(merges_.size());
      const std::optional<MergeQueue::Entry> head = queue_.pop();
      if (!head) {
        result.exhausted = true;
        break;
      }
      Step step;
      if (head->waiting) {
        const auto token = static_cast<Token>(head->number);
        tokens_[token].state = TokenState::kNormal;
        ++normal_;
        ++result.restored;
        step.returned = counted(token);
      } else if (!merge(head->number, head->count, step)) {
        continue;
      }
      if (on_step) on_step(step);
    }
    result.limited = queue_.reached_longest_token();
    result.restored += restored_;
    result.merges.reserve(merges_.size());
    for (const Made& made : merges_)
      result.merges.push_back(
          {std::string(tokens_[made.left].text), std::string(tokens_[made.right].text), is_out(tokens_[made.token])});
    result.splits = std::move(splits_);
    return result;
  }

 private:
  struct Made {
    Token left, right, token;
  };
  static constexpr uint64_t kIterationsPerTick = 256;

  // Brings the text to the state in which learning the given merges would have left it. The queue is still empty.
  void replay() {
    auto split = options_.given_splits.begin();
    for (const Merge& merge : options_.given) {
      const Token a = tokens_.intern(merge.left), b = tokens_.intern(merge.right);
      merged_text_.assign(merge.left).append(merge.right);
      const Token token = tokens_.intern(merged_text_);
      merges_.push_back({a, b, token});
      const uint32_t pair = text_.pairs.find_or_add(a, b);
      text_.replace(pair, token);
      make_normal(token, a, b);
      if (options_.algorithm == Algorithm::kPicky) remember_parts(token, pair, a, b);
      for (; split != options_.given_splits.end() && split->after == merges_.size(); ++split) replay(*split);
    }
    if (options_.algorithm == Algorithm::kBpe) return;
    // A given token is permanent: it is neither marked nor counted, unless PickyBPE has removed it.
    for (const Made& made : merges_)
      if (tokens_[made.token].state == TokenState::kNormal) tokens_[made.token].state = TokenState::kBase;
    normal_ = 0;
  }

  void replay(const Split& split) {
    const Token token = tokens_.intern(split.token);
    tokens_[token].state = TokenState::kUnmade;
    parts_.clear();
    for (const std::string& piece : split.pieces) add_part(tokens_.intern(piece));
    splits_.push_back(split);
    if (tokens_[token].frequency > 0) text_.split(token, made_by_[static_cast<size_t>(token)], parts_);
  }

  CountedToken counted(Token token) const { return {tokens_[token].text, tokens_[token].frequency}; }

  // Whether a merged token is in the text or the codes, but not in the vocabulary.
  static bool is_out(const TokenInfo& info) {
    return info.state == TokenState::kWaiting || (info.state == TokenState::kUnmade && info.left != kNoToken);
  }

  // Merges a pair; false if it is one that is never merged.
  bool merge(uint32_t pair, int64_t count, Step& step) {
    const Token a = text_.pairs[pair].left, b = text_.pairs[pair].right;
    const int64_t a_before = tokens_[a].frequency, b_before = tokens_[b].frequency;
    if (options_.algorithm == Algorithm::kPicky && spells_out_end_of_word(a, b)) return false;
    step.left = tokens_[a].text;
    step.right = tokens_[b].text;
    step.frequency = count;
    merged_text_.assign(tokens_[a].text).append(tokens_[b].text);
    const Token token = tokens_.intern(merged_text_);
    merges_.push_back({a, b, token});
    text_.replace(pair, token);
    text_.for_each_raised_pair([&](uint32_t raised) { queue_.push_pair(raised); });
    if (is_out(tokens_[token])) step.returned = counted(token);
    make_normal(token, a, b);
    if (options_.algorithm == Algorithm::kScaffold) mark_scaffold(a, b, step);
    if (options_.algorithm == Algorithm::kPicky) {
      remember_parts(token, pair, a, b);
      // Both are tested before either is removed, which can make the other more frequent.
      const bool left = is_intermediate(a, a_before), right = a != b && is_intermediate(b, b_before);
      if (left) step.left_marked = remove(a);
      if (right) step.right_marked = remove(b);
      restored_ += step.returned.has_value();
    }
    return true;
  }

  void make_normal(Token token, Token left, Token right) {
    TokenInfo& info = tokens_[token];
    if (info.left == kNoToken) {
      info.left = left;
      info.right = right;
      if (is_base_symbol(info.text, options_.alphabet)) info.state = TokenState::kBase;
    }
    if (info.state == TokenState::kUnmade || info.state == TokenState::kWaiting) {
      info.state = TokenState::kNormal;
      ++normal_;
    }
  }

  // Scaffold-BPE's addition to BPE: a child that is now rarer than the next candidate becomes scaffold.
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

  // In a text that spells out "</w>": the merged token would look like one at the end of a word.
  bool spells_out_end_of_word(Token left, Token right) {
    merged_text_.assign(tokens_[left].text).append(tokens_[right].text);
    return is_marked(merged_text_, options_.alphabet) && !is_marked(tokens_[right].text, options_.alphabet);
  }

  // Records how the token was made, in case PickyBPE splits it later.
  void remember_parts(Token token, uint32_t pair, Token left, Token right) {
    tokens_[token].left = left;
    tokens_[token].right = right;
    if (made_by_.size() < tokens_.size()) made_by_.resize(tokens_.size());
    std::vector<uint32_t>& pairs = made_by_[static_cast<size_t>(token)];
    if (std::find(pairs.begin(), pairs.end(), pair) == pairs.end()) pairs.push_back(pair);
  }

  // Whether the share of a token that a merge has taken, intersection over self, reaches the threshold.
  bool is_intermediate(Token token, int64_t before) const {
    const TokenInfo& info = tokens_[token];
    return info.state == TokenState::kNormal &&
           static_cast<double>(before - info.frequency) / static_cast<double>(before) >= options_.threshold;
  }

  // Removes a token from the vocabulary and splits its remaining occurrences; returns their number.
  int64_t remove(Token token) {
    TokenInfo& info = tokens_[token];
    const int64_t frequency = info.frequency;
    info.state = TokenState::kUnmade;
    --normal_;
    parts_.clear();
    take_apart(token);
    Split split{merges_.size(), std::string(info.text), {}};
    for (const LearningText::Part& part : parts_) split.pieces.emplace_back(tokens_[part.token].text);
    splits_.push_back(std::move(split));
    if (frequency > 0) {
      text_.split(token, made_by_[static_cast<size_t>(token)], parts_);
      text_.for_each_raised_pair([&](uint32_t pair) { queue_.push_pair(pair); });
    }
    return frequency;
  }

  // Adds the vocabulary tokens that a removed one consists of, by the merges that last made it.
  void take_apart(Token token) {
    if (tokens_[token].state != TokenState::kUnmade) return add_part(token);
    take_apart(tokens_[token].left);
    take_apart(tokens_[token].right);
  }

  void add_part(Token part) {
    std::string_view text = tokens_[part].text;
    if (is_marked(text, options_.alphabet)) text.remove_suffix(kEndOfWord.size());
    parts_.push_back({part, static_cast<uint32_t>(symbols_in(text, options_.alphabet))});
  }

  const LearnOptions& options_;
  LearningText text_;
  Tokens& tokens_;
  MergeQueue queue_;
  std::vector<Made> merges_;
  std::vector<Split> splits_;
  std::vector<std::vector<uint32_t>> made_by_;  // by token: the pairs that were replaced by it
  std::vector<LearningText::Part> parts_;       // of the token that is being removed
  uint64_t normal_ = 0;                         // normal merged tokens
  uint64_t restored_ = 0;                       // by a merge of PickyBPE
  std::string merged_text_;
};

}  // namespace

LearnResult learn(WordCounts words, const LearnOptions& options, const OnStep& on_step, const Tick& tick) {
  const Interruptible interruptible([&] { tick(0); });
  return Learner(std::move(words), options).learn(on_step, tick);
}

}  // namespace mt_scaffold

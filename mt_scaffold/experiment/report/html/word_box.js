"use strict";
// Segments typed words with the codes in the page, as in apply-bpe: Algorithm 2 of the Scaffold-BPE paper, or the events
// of PickyBPE in their order. Symbols are characters, or bytes in GPT-2's notation.

const {endOfWord: END_OF_WORD, separator: SEPARATOR} = document.getElementById("codes").dataset;

// Replaces `left` and `right`, where they are adjacent, by one symbol.
function merge(symbols, left, right) {
  const merged = [];
  for (let i = 0; i < symbols.length; i++) {
    if (symbols[i] === left && symbols[i + 1] === right) {
      merged.push(left + right);
      i++;
    } else {
      merged.push(symbols[i]);
    }
  }
  return merged;
}

// GPT-2's character for each byte: printable bytes stand for themselves, the others follow U+00FF.
const NOTATION = [];
for (let byte = 0, others = 256; byte < 256; byte++) {
  const printable = (byte > 32 && byte < 127) || (byte > 160 && byte !== 173);
  NOTATION.push(String.fromCodePoint(printable ? byte : others++));
}
const BYTES = new Map(NOTATION.map((character, byte) => [character, byte]));

// Bytes as readable text; if they are not whole characters, they stay in the notation.
function readable(notation) {
  try {
    const bytes = Uint8Array.from(notation, (character) => BYTES.get(character));
    const text = new TextDecoder("utf-8", {fatal: true, ignoreBOM: true}).decode(bytes);
    return text.replaceAll(" ", "␣").replaceAll("\n", "⏎").replaceAll("\t", "⇥");
  } catch {
    return notation;
  }
}

// The subwords of a word as they appear in segmented text.
function surface(pieces, shown) {
  return pieces.map((piece, i) => {
    const last = i + 1 === pieces.length;
    return {...piece, text: last ? shown(piece.text.slice(0, -END_OF_WORD.length)) : shown(piece.text) + SEPARATOR};
  });
}

// A line → its pieces.
function makeLineSegmenter({codes, bytes, pattern, digits}) {
  const ends = !pattern, segment = makeSegmenter(codes, ends);
  const shown = bytes ? readable : (text) => text;
  function pieces(word) {
    const symbols = bytes ? Array.from(new TextEncoder().encode(word), (byte) => NOTATION[byte]) : Array.from(word);
    if (!ends) return segment(symbols).map((piece) => ({...piece, text: shown(piece.text)}));
    symbols[symbols.length - 1] += END_OF_WORD;
    return surface(segment(symbols), shown);
  }
  if (!ends) {
    const divided = (word) => (digits ? word.split(/(\p{N})/u).filter((part) => part) : [word]);
    return (line) => (line.match(new RegExp(pattern, "gu")) ?? []).flatMap(divided).flatMap(pieces);
  }
  return (line) => line.replace(/^[\r ]+|[\r ]+$/g, "").split(" ").filter((word) => word).flatMap(pieces);
}

function makePickySegmenter(codes) {
  const events = codes.split("\n").slice(1).filter((line) => line).map((line) => line.split(" "));
  return function segment(symbols) {
    for (const event of events) {
      if (event.length === 2) {
        if (symbols.includes(event[0])) symbols = merge(symbols, ...event);
      } else {
        const [, token, ...pieces] = event;
        symbols = symbols.flatMap((symbol) => (symbol === token ? pieces : [symbol]));
      }
    }
    return symbols.map((text) => ({text, demolished: false}));
  };
}

// ends: whether the last symbol of a word carries "</w>".
function makeSegmenter(codes, ends) {
  if (codes.startsWith("#version: 0.4 picky")) return makePickySegmenter(codes);
  const rank = new Map();         // "left right" → position in the file
  const derivations = new Map();  // token → the merges that make it
  const scaffold = new Set();
  codes.split("\n").slice(1).forEach((line, position) => {
    if (!line) return;
    const [left, right, mark] = line.split(" ");
    const pair = left + " " + right, token = left + right;
    if (!rank.has(pair)) {
      rank.set(pair, position);
      if (!derivations.has(token)) derivations.set(token, []);
      derivations.get(token).push({left, right, position});
    }
    if (mark === "scaffold") scaffold.add(token); else scaffold.delete(token);
  });

  const demolished = new Map();
  function demolish(token) {
    if (!scaffold.has(token)) return [token];
    if (!demolished.has(token)) {
      let best = null;
      for (const {left, right, position} of derivations.get(token)) {
        const result = [...demolish(left), ...demolish(right)];
        // A cut within "</w>" is possible only where the text spells it out.
        const cuts = ends && token.endsWith(END_OF_WORD) && right.length <= END_OF_WORD.length ? 1 : 0;
        const key = [cuts, result.length, position];
        const differs = best ? key.findIndex((value, i) => value !== best.key[i]) : 0;
        if (!best || (differs >= 0 && key[differs] < best.key[differs])) best = {key, result};
      }
      demolished.set(token, best.result);
    }
    return demolished.get(token);
  }

  // The symbols of a word → its subwords: the text of each, and whether it comes from a scaffold token.
  return function segment(symbols) {
    for (;;) {
      let lowest = Infinity, found = null;
      for (let i = 0; i + 1 < symbols.length; i++) {
        const position = rank.get(symbols[i] + " " + symbols[i + 1]);
        if (position !== undefined && position < lowest) {
          lowest = position;
          found = [symbols[i], symbols[i + 1]];
        }
      }
      if (!found) break;
      symbols = merge(symbols, ...found);
    }
    return symbols.flatMap((symbol) => demolish(symbol).map((text) => ({text, demolished: scaffold.has(symbol)})));
  };
}

function startWordBox() {
  const boxes = JSON.parse(document.getElementById("codes").textContent);
  const input = document.getElementById("word-box");
  const rows = boxes.map((box, number) => (
    {segment: makeLineSegmenter(box), output: document.getElementById("segmented-" + number)}));
  function show() {
    const lines = input.value.split("\n");
    for (const {segment, output} of rows) {
      output.replaceChildren();
      lines.forEach((line, number) => {
        if (number) output.append("\n");
        segment(line).forEach((piece, i) => {
          if (i) output.append(" ");
          const span = document.createElement("span");
          span.textContent = piece.text;
          span.className = piece.demolished ? "piece demolished" : "piece";
          output.append(span);
        });
      });
    }
  }
  input.addEventListener("input", show);
  show();
}

startWordBox();
addEventListener("beforeprint", () => {
  for (const details of document.querySelectorAll("details")) details.open = true;
});

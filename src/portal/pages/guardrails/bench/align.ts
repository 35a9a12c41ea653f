/** A piece of two texts: what stood there before a guardrail, and after it. */
export interface Segment {
  readonly before: string
  readonly after: string
}

/** Placeholders, words and addresses, blanks, and single signs. */
const token = /\[[A-Z][A-Z0-9_]*\]|[\p{L}\p{N}_](?:[\p{L}\p{N}_@.+/-]*[\p{L}\p{N}_])?|\s+|[^\p{L}\p{N}_\s]/gu
/** The table of the comparison has this many cells at most. Longer texts are compared from both ends alone. */
const mostCells = 4_000_000

/** Returns the two texts in pieces that are equal or differ, so that what a guardrail changed can be marked in both. */
export const align = (before: string, after: string): ReadonlyArray<Segment> => {
  const [a, b] = [before.match(token) ?? [], after.match(token) ?? []]
  let start = 0
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1
  let end = 0
  while (end < a.length - start && end < b.length - start && a.at(-1 - end) === b.at(-1 - end)) end += 1
  const head = a.slice(0, start).join("")
  const tail = a.slice(a.length - end).join("")
  return joined([
    { before: head, after: head },
    ...middle(a.slice(start, a.length - end), b.slice(start, b.length - end)),
    { before: tail, after: tail }
  ])
}

const middle = (a: ReadonlyArray<string>, b: ReadonlyArray<string>): ReadonlyArray<Segment> => {
  if (a.length === 0 || b.length === 0 || a.length * b.length > mostCells) {
    return [{ before: a.join(""), after: b.join("") }]
  }
  const width = b.length + 1
  // the length of the longest common part of what follows
  const common = new Uint32Array((a.length + 1) * width)
  const at = (i: number, j: number): number => common[i * width + j] ?? 0
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      common[i * width + j] = a[i] === b[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1))
    }
  }
  const segments: Array<Segment> = []
  let [i, j] = [0, 0]
  while (i < a.length || j < b.length) {
    const [x = "", y = ""] = [a[i], b[j]]
    if (i < a.length && j < b.length && x === y) {
      segments.push({ before: x, after: y })
      i += 1
      j += 1
    } else if (j >= b.length || (i < a.length && at(i + 1, j) >= at(i, j + 1))) {
      segments.push({ before: x, after: "" })
      i += 1
    } else {
      segments.push({ before: "", after: y })
      j += 1
    }
  }
  return segments
}

export const isChanged = ({ after, before }: Segment): boolean => before !== after

/** Neighbours that are both equal, or both changed, are one piece. A blank between two changes belongs to them. */
const joined = (segments: ReadonlyArray<Segment>): ReadonlyArray<Segment> => {
  const out: Array<Segment> = []
  for (const segment of segments) {
    if (segment.before === "" && segment.after === "") continue
    const last = out.at(-1)
    if (last !== undefined && isChanged(last) === isChanged(segment)) {
      out[out.length - 1] = { before: last.before + segment.before, after: last.after + segment.after }
    } else out.push(segment)
  }
  return out
}

const utf8 = new TextEncoder()

/**
 * Returns how many bytes of the model's text wait after each chunk. What was sent of a changed piece counts for the whole
 * piece, because a guardrail sends a replacement at once.
 */
export const heldAfter = (chunks: ReadonlyArray<string>, sent: ReadonlyArray<string>): ReadonlyArray<number> => {
  const whole = chunks.join("")
  const segments = withCutEnd(align(whole, sent.join("")))
  let arrived = 0
  let gone = 0
  return chunks.map((chunk, place) => {
    arrived += chunk.length
    gone += sent[place]?.length ?? 0
    const passed = Math.min(arrived, passedOf(segments, gone))
    return utf8.encode(whole.slice(passed, arrived)).length
  })
}

/** A stream that was stopped ends within a word: its beginning was sent, and the rest waits for ever. */
const withCutEnd = (segments: ReadonlyArray<Segment>): ReadonlyArray<Segment> => {
  const last = segments.at(-1)
  if (last === undefined || !isChanged(last) || !last.before.startsWith(last.after)) return segments
  const { after, before } = last
  return [...segments.slice(0, -1), { before: after, after }, { before: before.slice(after.length), after: "" }]
}

/** How much of the text before stands for the first `length` characters of the text after. */
const passedOf = (segments: ReadonlyArray<Segment>, length: number): number => {
  let [before, after] = [0, 0]
  for (const segment of segments) {
    if (after + segment.after.length > length) {
      return isChanged(segment) ? before : before + (length - after)
    }
    // what is replaced by nothing passes with what follows it
    if (after === length && segment.after === "") return before
    before += segment.before.length
    after += segment.after.length
  }
  return before
}

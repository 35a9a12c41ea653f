import { Scanner, type Segment, type Writing } from "../detect/Scanner.ts"
import { literalAt, withLiterals } from "../text/Literals.ts"
import type { TextSpan } from "../text/Reader.ts"
import type { LinkContext } from "./LinkContext.ts"
import { stringStarts } from "./MemberOrder.ts"
import type { Redaction } from "./Redaction.ts"
import { TextRedactor } from "./TextRedactor.ts"

interface ScannedSpan {
  readonly span: TextSpan
  readonly value: string
  readonly segments: ReadonlyArray<Segment>
}

/**
 * Redacts the texts of a JSON document and keeps all other bytes. Placeholders are numbered in the order of the members'
 * names. Placeholders that a request already contains are not used for its values.
 */
export const redact = (
  redaction: Redaction,
  json: string,
  spans: ReadonlyArray<TextSpan>,
  kind: "request" | "response"
): string => {
  const scanners = new Map<Writing, Scanner>()
  const scanned = spans.flatMap((span): ReadonlyArray<ScannedSpan> => {
    const value = literalAt(json, span)
    const segments = scannerOf(scanners, redaction, span.writing).scan(value)
    return segments.every(({ _tag }) => _tag === "Text") ? [] : [{ span, value, segments }]
  })
  if (kind === "request") {
    for (const { segments } of scanned)
      for (const { _tag, raw } of segments) if (_tag === "Placeholder") redaction.reserve(raw)
  }
  const isRestored =
    redaction.restore && scanned.some(({ segments }) => segments.some(({ _tag }) => _tag === "Placeholder"))
  const links = isRestored ? openLinks(redaction, json, spans) : undefined
  const changes = inMemberOrder(json, scanned).flatMap(({ segments, span, value }) => {
    const redacted = new TextRedactor(redaction, span, [], links?.get(span)).render(segments)
    return redacted === value ? [] : [{ ...span, value: redacted }]
  })
  return changes.length === 0 ? json : withLiterals(json, changes)
}

/**
 * Returns the links that continue from one block of a message into the next, by the block that they continue in. A reader
 * may see the blocks as one text, also those of a service. Choices are texts of their own.
 */
const openLinks = (
  redaction: Redaction,
  json: string,
  spans: ReadonlyArray<TextSpan>
): ReadonlyMap<TextSpan, LinkContext> => {
  const links = new Map<TextSpan, LinkContext>()
  let previous: LinkContext | undefined
  for (const span of spans) {
    if ((span.place !== "message content" && span.place !== "other text") || span.writing === "json") continue
    if (!blockText.test(json.slice(Math.max(0, span.start - maxBlockText), span.start))) {
      if (span.place === "message content") previous = undefined
      continue
    }
    if (previous !== undefined) links.set(span, previous)
    previous = new TextRedactor(redaction, span, [], previous).linkAfter(literalAt(json, span))
  }
  return links
}

const blockText = /"text"\s{0,4}:\s{0,4}$/
const maxBlockText = 16

/** Many texts are short, so that a scanner for each would take more time than the texts. */
const scannerOf = (scanners: Map<Writing, Scanner>, { detectors }: Redaction, writing: Writing): Scanner => {
  const known = scanners.get(writing)
  if (known !== undefined) return known
  const created = new Scanner(detectors, writing)
  scanners.set(writing, created)
  return created
}

const inMemberOrder = (json: string, scanned: ReadonlyArray<ScannedSpan>): ReadonlyArray<ScannedSpan> => {
  if (scanned.length < 2) return scanned
  const positions = new Map(stringStarts(json).map((start, position) => [start, position]))
  const positionOf = ({ span }: ScannedSpan) => positions.get(span.start) ?? 0
  return [...scanned].sort((a, b) => positionOf(a) - positionOf(b))
}

import { Scanner, type Segment, type Writing } from "../detect/Scanner.ts"
import { literalAt, withLiterals } from "../text/Literals.ts"
import type { TextSpan } from "../text/Reader.ts"
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
  const changes = inMemberOrder(json, scanned).flatMap(({ segments, span, value }) => {
    const redacted = new TextRedactor(redaction, span).render(segments)
    return redacted === value ? [] : [{ ...span, value: redacted }]
  })
  return changes.length === 0 ? json : withLiterals(json, changes)
}

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

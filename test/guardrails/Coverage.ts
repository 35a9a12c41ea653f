import { unreadablePlaces } from "../../src/guardrails/text/Place.ts"
import type { PlaceRow } from "./text/PlaceRow.ts"

/** A value for each detector, which the detector finds and no other one. */
export const samples: ReadonlyArray<readonly [detector: string, kind: string, value: string]> = [
  ["email", "EMAIL", "jane@example.com"],
  ["ssn", "SSN", "123-45-6789"],
  ["phone", "PHONE", "555-123-4567"],
  ["payment_card", "CARD", "4111 1111 1111 1111"],
  ["iban", "IBAN", "DE89 3704 0044 0532 0130 00"],
  ["ip_address", "IP", "203.0.113.7"],
  ["secret", "SECRET", `ghp_${"a1B2c3D4e5".repeat(4).slice(0, 36)}`],
  ["custom_patterns", "EMPLOYEE", "EMP-12345"]
]

export const everyDetector = {
  detectors: Object.fromEntries(
    samples.flatMap(([detector]) => (detector === "custom_patterns" ? [] : [[detector, true]]))
  ),
  custom_patterns: [{ name: "EMPLOYEE", pattern: "EMP-[0-9]{5}" }]
}

export const isUnreadable = ({ place }: PlaceRow): boolean => unreadablePlaces.some((name) => name === place)

/** What happens to a finding in this place. */
const treatment = (row: PlaceRow): string => (isUnreadable(row) || row.signed ? "policy" : "redacted")

const columns: ReadonlyArray<readonly [title: string, fits: (row: PlaceRow) => boolean]> = [
  ["request", ({ direction }) => direction === "request"],
  ["plain response", ({ delivery, direction }) => direction === "response" && delivery === "plain"],
  ["event stream", ({ delivery, direction }) => direction === "response" && delivery !== "plain"]
]

/** The table of the guide: a row for each place of a route. */
export const table = (places: ReadonlyArray<PlaceRow>): string => {
  const names = [...new Set(places.map(({ place, route }) => `${route} | ${place}`))]
  const lines = names.map((name) => {
    const rows = places.filter(({ place, route }) => `${route} | ${place}` === name)
    const cells = columns.map(([, fits]) => [...new Set(rows.filter(fits).map(treatment))].sort().join(" or ") || "–")
    return `| ${name} | ${cells.join(" | ")} |`
  })
  return [
    `| route | place | ${columns.map(([title]) => title).join(" | ")} |`,
    "| --- | --- | --- | --- | --- |",
    ...lines
  ].join("\n")
}

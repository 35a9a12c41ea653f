/** Texts for numbers, money and times. Every page writes them alike. */

// The first `Intl` format of a page takes 10 ms to make, in the middle of its first paint.

/** `1,204.5`, with `most` digits after the point, and zeros at the end only up to `least` of them. */
export const decimalText = (value: number, most: number, least = 0): string => {
  const text = Math.abs(value).toFixed(most)
  if (!/^\d+(\.\d+)?$/.test(text)) return String(value)
  const [whole = "", digits = ""] = text.split(".")
  const kept = digits.slice(0, least) + digits.slice(least).replace(/0+$/, "")
  const size = whole.replace(/\B(?=(\d{3})+$)/g, ",") + (kept === "" ? "" : `.${kept}`)
  return value < 0 && /[1-9]/.test(size) ? `-${size}` : size
}

/** `$0.000042`, `$0.31`, `$1,204`: as exact as the amount needs. */
export const moneyText = (dollars: number): string => {
  const size = Math.abs(dollars)
  if (size === 0) return "$0"
  const digits = size >= 1_000 ? 0 : size >= 0.1 ? 2 : size >= 0.001 ? 4 : 6
  const text = decimalText(size, digits, digits)
  return `${dollars < 0 ? "−" : ""}$${text === "0.000000" ? "0.000001 or less" : text}`
}

/** `12,304`; where only the size matters, see `shortCountText`. */
export const countText = (count: number): string => decimalText(count, 0)

/** `1 letter`, `2 letters`, `1,204 letters`. */
export const countedText = (count: number, one: string, many = `${one}s`): string =>
  `${countText(count)} ${count === 1 ? one : many}`

/** `950`, `1.2K`, `12.3M`. */
export const shortCountText = (count: number): string => {
  const size = Math.abs(count)
  const tenths = shortUnits.map(([unit, one]) => [unit, Math.round(size / (one / 10))] as const)
  // 999,950 is 1M, and not 1000K
  const [unit, value] = tenths.find(([, value]) => value < 10_000) ?? tenths.at(-1) ?? ["", 0]
  return `${count < 0 && value > 0 ? "-" : ""}${value / 10}${unit}`
}
const shortUnits = [
  ["", 1],
  ["K", 1_000],
  ["M", 1_000_000],
  ["B", 1_000_000_000],
  ["T", 1_000_000_000_000]
] as const

export const percentText = (part: number, whole: number): string =>
  whole === 0 ? "–" : `${decimalText((part / whole) * 100, 1)} %`

/** `340 µs`, `12 ms`, `1.4 s`, `3 min 20 s`, `2 h 5 min`, `3 d 4 h`. */
export const durationText = (ms: number): string => {
  if (ms === 0) return "0 ms"
  if (ms < 1) return `${Math.round(ms * 1_000)} µs`
  if (ms < 1_000) return `${Math.round(ms)} ms`
  if (ms < 60_000) return `${decimalText(ms / 1_000, ms < 10_000 ? 1 : 0)} s`
  const units = [
    ["d", 86_400_000],
    ["h", 3_600_000],
    ["min", 60_000],
    ["s", 1_000]
  ] as const
  const first = units.findIndex(([, size]) => ms >= size)
  const parts = units.slice(first, first + 2).map(([unit, size], place) => {
    const before = place === 0 ? ms : ms % (units[first]?.[1] ?? 1)
    return [Math.floor(before / size), unit] as const
  })
  return parts
    .filter(([count], place) => place === 0 || count > 0)
    .map(([count, unit]) => `${count} ${unit}`)
    .join(" ")
}

/** `3 min ago`, `in 5 h`, `now`. */
export const relativeText = (at: number, now: number): string => {
  const away = Math.abs(at - now)
  if (away < 1_000) return "now"
  // what was set to end in a week ends "in 7 d" a moment later, and not "in 6 d"
  const lasting = at < now ? away : away + Math.min(60_000, away / 100)
  const coarse = durationText(lasting).split(" ").slice(0, 2).join(" ")
  return at < now ? `${coarse} ago` : `in ${coarse}`
}

const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

/** A time whose parts are those of the local clock, or else of UTC. */
const shifted = (at: Date, utc: boolean): Date => (utc ? at : new Date(at.getTime() - at.getTimezoneOffset() * 60_000))

const two = (part: number): string => String(part).padStart(2, "0")
const minuteOf = (at: Date): string => `${two(at.getUTCHours())}:${two(at.getUTCMinutes())}`

/** `26 Nov, 14:03`, with the year if it is another one. */
export const clockText = (at: Date, utc: boolean): string => {
  const [shown, now] = [shifted(at, utc), shifted(new Date(), utc)]
  const isThisYear = shown.getUTCFullYear() === now.getUTCFullYear()
  return `${dayText(shown)}${isThisYear ? "" : ` ${shown.getUTCFullYear()}`}, ${minuteOf(shown)}`
}

/** `26 Nov`: a day of the records, which is one of UTC. */
export const dayText = (at: Date): string => `${at.getUTCDate()} ${months[at.getUTCMonth()]}`

/** `book-17…70.2`: a text with at most so many characters, cut in its middle, because ids differ at their ends. */
export const middleText = (text: string, most: number): string => {
  const characters = [...text]
  if (characters.length <= most) return text
  const end = Math.floor((most - 1) / 2)
  return `${characters.slice(0, most - 1 - end).join("")}…${characters.slice(-end).join("")}`
}

const minuteMs = 60_000
const dayMs = 86_400_000

/** `26 Nov`, `26 Nov, 14:03` or `14:03:09`: when a bucket of a chart begins. */
export const bucketText = (at: Date, bucketMs: number, utc: boolean): string =>
  bucketMs >= dayMs ? dayText(at) : bucketMs < minuteMs ? secondText(at, utc) : clockText(at, utc)

/** The same where there is little room: `26 Nov` or `14:03`. */
export const tickText = (at: Date, bucketMs: number, utc: boolean): string =>
  bucketMs >= dayMs ? dayText(at) : bucketMs < minuteMs ? secondText(at, utc) : minuteOf(shifted(at, utc))

/** `14:03:09`. */
const secondText = (at: Date, utc: boolean): string => `${minuteOf(shifted(at, utc))}:${two(at.getUTCSeconds())}`

const days = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]

/** `Thursday 14:03`: a time of the days to come. */
export const weekdayText = (at: Date, utc: boolean): string => {
  const shown = shifted(at, utc)
  return `${days[shown.getUTCDay()]} ${minuteOf(shown)}`
}

/** `26 Nov 2026, 14:03:09 +01:00`: the whole time, for hints and copies. */
export const exactText = (at: Date, utc: boolean): string => {
  if (utc) return at.toISOString()
  const shown = shifted(at, false)
  const ahead = -at.getTimezoneOffset()
  const [hours, minutes] = [Math.floor(Math.abs(ahead) / 60), Math.abs(ahead) % 60]
  const zone = `${ahead < 0 ? "-" : "+"}${two(hours)}:${two(minutes)}`
  return `${dayText(shown)} ${shown.getUTCFullYear()}, ${minuteOf(shown)}:${two(shown.getUTCSeconds())} ${zone}`
}

export const bytesText = (bytes: number): string =>
  bytes < 1_024
    ? `${bytes} B`
    : bytes < 1_048_576
      ? `${(bytes / 1_024).toFixed(1)} KiB`
      : bytes < 1_073_741_824
        ? `${(bytes / 1_048_576).toFixed(1)} MiB`
        : `${(bytes / 1_073_741_824).toFixed(1)} GiB`

/** Says in a title what `UsedUp` shows. */
export const usedUpText = (at: string, now: number): string =>
  `used up ${relativeText(Date.parse(at), now)} at this rate`

/** Says in a title what `RaiseEnds` shows. */
export const raiseEndsText = (at: string, now: number): string =>
  `raised; the raise ends ${relativeText(Date.parse(at), now)}`

/** JSON for a person to read, or to edit. */
export const prettyOf = (value: unknown): string => JSON.stringify(value, null, 2) ?? ""

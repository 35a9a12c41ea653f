/** Texts for numbers, money and times. Every page writes them alike. */

/** Making a format takes much longer than using it, and a table has hundreds of numbers: each is made when it is needed first. */
const once = <Made>(make: () => Made): (() => Made) => {
  let made: Made | undefined
  return () => {
    made ??= make()
    return made
  }
}

const made = new Map<string, Intl.NumberFormat>()

const decimal = (most: number, least = 0): Intl.NumberFormat => {
  const name = `${least} ${most}`
  const known = made.get(name)
  if (known !== undefined) return known
  const format = new Intl.NumberFormat("en-US", { minimumFractionDigits: least, maximumFractionDigits: most })
  made.set(name, format)
  return format
}
const compact = once(() => new Intl.NumberFormat("en-US", { notation: "compact", maximumFractionDigits: 1 }))

/** `$0.000042`, `$0.31`, `$1,204`: as exact as the amount needs. */
export const moneyText = (dollars: number): string => {
  const size = Math.abs(dollars)
  if (size === 0) return "$0"
  const digits = size >= 1_000 ? 0 : size >= 0.1 ? 2 : size >= 0.001 ? 4 : 6
  const text = decimal(digits, digits).format(size)
  return `${dollars < 0 ? "−" : ""}$${text === "0.000000" ? "0.000001 or less" : text}`
}

/** `12,304`, or `1.2 M` where only the size matters. */
export const countText = (count: number): string =>
  // the first page has only such numbers while its data is on the way, and needs no format for them
  Number.isInteger(count) && Math.abs(count) < 1_000 ? String(count) : decimal(0).format(count)

/** `1 letter`, `2 letters`, `1,204 letters`. */
export const countedText = (count: number, one: string, many = `${one}s`): string =>
  `${countText(count)} ${count === 1 ? one : many}`

export const shortCountText = (count: number): string => compact().format(count)

export const percentText = (part: number, whole: number): string =>
  whole === 0 ? "–" : `${decimal(1).format((part / whole) * 100)} %`

/** `340 µs`, `12 ms`, `1.4 s`, `3 min 20 s`, `2 h 5 min`, `3 d 4 h`. */
export const durationText = (ms: number): string => {
  if (ms < 1) return `${Math.round(ms * 1_000)} µs`
  if (ms < 1_000) return `${Math.round(ms)} ms`
  if (ms < 60_000) return `${decimal(ms < 10_000 ? 1 : 0).format(ms / 1_000)} s`
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
  const coarse = durationText(away).split(" ").slice(0, 2).join(" ")
  return at < now ? `${coarse} ago` : `in ${coarse}`
}

const dayAndMinute = { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" } as const

const clocks = (zone: { readonly timeZone?: "UTC" }) => ({
  thisYear: once(() => new Intl.DateTimeFormat("en-GB", { ...dayAndMinute, ...zone })),
  otherYear: once(() => new Intl.DateTimeFormat("en-GB", { ...dayAndMinute, year: "numeric", ...zone }))
})
const [utcClocks, localClocks] = [clocks({ timeZone: "UTC" }), clocks({})]
const exact = once(() => new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "long" }))

/** `26 Nov 14:03`, with the year if it is another one. */
export const clockText = (at: Date, utc: boolean): string => {
  const { otherYear, thisYear } = utc ? utcClocks : localClocks
  return (at.getFullYear() === new Date().getFullYear() ? thisYear : otherYear)().format(at)
}

const day = once(() => new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", timeZone: "UTC" }))

/** `26 Nov`: a day of the records, which is one of UTC. */
export const dayText = (at: Date): string => day().format(at)

/** The whole time, for hints and copies. */
export const exactText = (at: Date, utc: boolean): string => (utc ? at.toISOString() : exact().format(at))

export const bytesText = (bytes: number): string =>
  bytes < 1_024
    ? `${bytes} B`
    : bytes < 1_048_576
      ? `${(bytes / 1_024).toFixed(1)} KiB`
      : bytes < 1_073_741_824
        ? `${(bytes / 1_048_576).toFixed(1)} MiB`
        : `${(bytes / 1_073_741_824).toFixed(1)} GiB`

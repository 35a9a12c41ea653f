import type { Series } from "./series.ts"

const paletteSize = 8

/** The colours of `tokens.css`, in their order. */
export const colorOf = ({ color }: Series, place: number): string =>
  color ?? `var(--series-${(place % paletteSize) + 1})`

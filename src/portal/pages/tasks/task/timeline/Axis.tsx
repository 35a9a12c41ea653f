import { type PointerEvent, useState } from "react"
import { useUtc } from "../../../../address/useUtc.ts"
import { ticksOf } from "./bars.ts"
import styles from "./Timeline.module.css"
import type { Window } from "./useWindow.ts"

interface Props {
  readonly window: Window
  /** The width of the labels, in pixels, and of the time beside them. */
  readonly labels: number
  readonly pixels: number
}

const tickWidth = 96

/** The times. A stroke over them shows that part alone. */
export const Axis = ({ labels, pixels, window: { show, span } }: Props) => {
  const utc = useUtc()
  const [brush, setBrush] = useState<readonly [number, number]>()
  const scale = pixels / (span.to - span.from)
  const ticks = ticksOf(span, Math.max(2, Math.floor(pixels / tickWidth)))
  const hasRoom = (at: number) => (at - span.from) * scale <= pixels - tickWidth
  const placeOf = (event: PointerEvent<HTMLElement>) => event.clientX - event.currentTarget.getBoundingClientRect().left
  const format = new Intl.DateTimeFormat("en-GB", {
    hour: "2-digit",
    minute: "2-digit",
    second: "2-digit",
    ...(span.to - span.from < 5_000 && { fractionalSecondDigits: 3 }),
    ...(span.to - span.from > 86_400_000 && { day: "numeric", month: "short" }),
    ...(utc && { timeZone: "UTC" })
  })
  return (
    <div className={styles.axis} style={{ paddingLeft: labels }}>
      <div
        className={styles.ticks}
        onPointerDown={(event) => {
          event.currentTarget.setPointerCapture(event.pointerId)
          setBrush([placeOf(event), placeOf(event)])
        }}
        onPointerMove={(event) => brush !== undefined && setBrush([brush[0], placeOf(event)])}
        onPointerUp={() => {
          if (brush !== undefined && Math.abs(brush[1] - brush[0]) > 4)
            show(span.from + Math.min(...brush) / scale, span.from + Math.max(...brush) / scale)
          setBrush(undefined)
        }}
      >
        {/* at the right edge the only time stands before its stroke, and another one would cover the time before it */}
        {ticks.map((at, place) => (
          <span
            key={at}
            className={styles.tick}
            data-before={(place === 0 && !hasRoom(at)) || undefined}
            style={{ left: (at - span.from) * scale }}
          >
            {(place === 0 || hasRoom(at)) && format.format(at)}
          </span>
        ))}
        {brush !== undefined && (
          <span
            className={styles.brush}
            style={{ left: Math.min(...brush), width: Math.abs(brush[1] - brush[0]) }}
            aria-hidden="true"
          />
        )}
      </div>
    </div>
  )
}

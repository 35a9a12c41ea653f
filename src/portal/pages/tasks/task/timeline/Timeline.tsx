import { useElementSize, useMediaQuery } from "@mantine/hooks"
import { useVirtualizer } from "@tanstack/react-virtual"
import { type KeyboardEvent, useEffect, useEffectEvent, useMemo, useRef, useState } from "react"
import { useNow } from "../../../../address/useNow.ts"
import { Empty } from "../../../../shared/page/Empty.tsx"
import type { Attempt } from "../../attempts/attempts.ts"
import { Axis } from "./Axis.tsx"
import { barsOf } from "./bars.ts"
import { Controls } from "./Controls.tsx"
import { Row } from "./Row.tsx"
import { failuresOf, rowsOf, spanOf, wholeOf } from "./rows.ts"
import styles from "./Timeline.module.css"
import { useWindow } from "./useWindow.ts"

interface Props {
  readonly attempts: ReadonlyArray<Attempt>
  readonly taskId: string
  readonly selection: string | undefined
  readonly onSelect: (id: string | undefined) => void
}

const rowHeight = 28

/** When each attempt of the task and of its children began, how long it took, and how it ended. */
export const Timeline = ({ attempts, onSelect, selection, taskId }: Props) => {
  const isNarrow = useMediaQuery("(max-width: 767px)", undefined, { getInitialValueInEffect: false }) === true
  const now = useNow(1_000)
  const [toggled, setToggled] = useState<ReadonlySet<string>>(new Set())
  const rows = useMemo(() => rowsOf(attempts, taskId, toggled), [attempts, taskId, toggled])
  const isRunning = attempts.some(
    ({ outcome, retry }) => outcome === "running" || (retry !== undefined && retry.until === undefined)
  )
  // what has ended is drawn once, and not every second
  const until = isRunning ? now : 0
  const drawn = useMemo(() => spanOf(attempts, until || Date.now()), [attempts, until])
  const window = useWindow(drawn)
  const scroller = useRef<HTMLDivElement>(null)
  const { ref: track, width } = useElementSize()
  const labels = isNarrow ? 104 : 240
  const pixels = Math.max(80, width - labels)
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowHeight,
    overscan: 8
  })
  const failed = useMemo(() => failuresOf(rows), [rows])

  const nextFailure = () => {
    const place = failed.findIndex(({ id }) => id === selection)
    const next = failed[(place + 1) % failed.length]
    if (next === undefined) return
    onSelect(next.id)
    window.reveal(next.start)
    virtual.scrollToIndex(rows.findIndex((row) => row.attempts.includes(next)))
  }
  const toggle = (id: string) => {
    const after = new Set(toggled)
    if (!after.delete(id)) after.add(id)
    setToggled(after)
  }

  const pressAnywhere = useEffectEvent((event: globalThis.KeyboardEvent) => {
    const { altKey, ctrlKey, key, metaKey, target } = event
    const isTyping = target instanceof HTMLElement && target.closest("input, textarea, [role=dialog]") !== null
    if (altKey || ctrlKey || metaKey || isTyping) return
    if (key === "f") nextFailure()
  })
  useEffect(() => {
    const listener = (event: globalThis.KeyboardEvent) => pressAnywhere(event)
    document.addEventListener("keydown", listener)
    return () => document.removeEventListener("keydown", listener)
  }, [])
  const press = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return
    const act: Readonly<Record<string, () => void>> = {
      "+": () => window.zoom(0.5),
      "=": () => window.zoom(0.5),
      "-": () => window.zoom(2),
      "0": window.reset,
      ArrowLeft: () => window.pan(-0.2),
      ArrowRight: () => window.pan(0.2)
    }
    const found = act[event.key]
    if (found === undefined) return
    event.preventDefault()
    found()
  }

  if (attempts.length === 0)
    return <Empty>No attempt is known. Workers tell of them where they have an observation sink.</Empty>
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the rows in it take the focus, and the keys move the time
    <div ref={track} className={styles.timeline} onKeyDown={press}>
      <Controls
        window={window}
        failures={failed.length}
        onFailure={nextFailure}
        attempts={attempts}
        whole={wholeOf(attempts, now)}
      />
      <div ref={scroller} className={styles.scroller}>
        <Axis window={window} labels={labels} pixels={pixels} />
        <div className={styles.rows} style={{ height: virtual.getTotalSize() }}>
          {virtual.getVirtualItems().map(({ index, start }) => {
            const row = rows[index]
            if (row === undefined) return null
            return (
              <Row
                key={row.id}
                row={row}
                bars={row.kind === "group" && row.isOpen ? [] : barsOf(row.attempts, window.span, pixels, now)}
                top={start}
                labels={labels}
                selection={selection}
                onSelect={onSelect}
                onToggle={() => toggle(row.id)}
              />
            )
          })}
        </div>
      </div>
    </div>
  )
}

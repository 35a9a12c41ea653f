import { SegmentedControl } from "@mantine/core"
import { useTextSearch } from "../../address/search.ts"

/** The queues as rows, or as a map of exchanges, queues and stages. */
export const MapSwitch = () => {
  const { change, text } = useTextSearch()
  return (
    <SegmentedControl
      aria-label="Show as"
      data={[
        { value: "rows", label: "Queues" },
        { value: "map", label: "Map" }
      ]}
      value={text("view") === "map" ? "map" : "rows"}
      onChange={(view) => change({ view: view === "map" ? view : undefined })}
    />
  )
}

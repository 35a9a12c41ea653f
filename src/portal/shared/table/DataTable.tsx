import { Checkbox } from "@mantine/core"
import { useLocalStorage, useMediaQuery } from "@mantine/hooks"
import {
  type ColumnDef,
  columnVisibilityFeature,
  type RowData,
  rowSelectionFeature,
  tableFeatures,
  useTable
} from "@tanstack/react-table"
import { useVirtualizer } from "@tanstack/react-virtual"
import {
  type KeyboardEvent,
  type ReactNode,
  useCallback,
  useEffect,
  useLayoutEffect,
  useMemo,
  useRef,
  useState
} from "react"
import type { List } from "../../api/queries.ts"
import { beside, cellOf, copyCell, isOwn } from "./cells.ts"
import type { Column, Sorting } from "./column.ts"
import styles from "./DataTable.module.css"
import { HeaderCell } from "./HeaderCell.tsx"
import { MorePages } from "./MorePages.tsx"
import { type Density, TableMenu } from "./TableMenu.tsx"
import { type RowActions, TableRow } from "./TableRow.tsx"

export type { Column, Sorting }

interface Props<Row> {
  /** Under this name the chosen columns are kept. */
  readonly name: string
  readonly label: string
  readonly columns: ReadonlyArray<Column<Row>>
  readonly rows: ReadonlyArray<Row>
  readonly rowId: (row: Row) => string
  /** Rows are opened with a click and with Enter. */
  readonly onOpen?: (row: Row) => void
  /** The id of the row that the drawer shows. */
  readonly openId?: string | undefined
  readonly sorting?: Sorting
  /** Of a list that is read page by page. */
  readonly list?: List<Row>
  readonly selected?: ReadonlySet<string>
  readonly onSelect?: (ids: ReadonlySet<string>) => void
  /** Above the rows, beside the choice of columns: filters, counts, exports. */
  readonly toolbar?: ReactNode
  /** In place of the rows and of `empty`, below the toolbar: the rows are loading, or cannot be read. */
  readonly instead?: ReactNode
  readonly empty: ReactNode
}

const features = tableFeatures({ columnVisibilityFeature, rowSelectionFeature })
/** In pixels, as `DataTable.module.css` has them. */
const rowHeights = { comfortable: 34, compact: 28 } as const
/** More rows are drawn only where they are seen. */
const mostPlain = 60

/** Rows of one kind. On narrow screens each is a card. */
export const DataTable = <Row extends RowData>(props: Props<Row>) => {
  const { columns, empty, instead, label, list, name, onSelect, rowId, rows, selected, toolbar } = props
  const [shown, setShown] = useLocalStorage<Readonly<Record<string, boolean>>>({
    key: `svc-columns-${name}`,
    defaultValue: {}
  })
  const [density, setDensity] = useLocalStorage<Density>({
    key: "svc-density",
    defaultValue: "comfortable",
    getInitialValueInEffect: false
  })
  const isNarrow = useMediaQuery("(max-width: 767px)", undefined, { getInitialValueInEffect: false }) === true
  const [current, setCurrent] = useState(-1)
  const scroller = useRef<HTMLDivElement>(null)

  const definitions = useMemo(
    () =>
      columns.map(
        (column): ColumnDef<typeof features, Row> => ({
          id: column.id,
          header: column.header,
          accessorFn: (row) => row
        })
      ),
    [columns]
  )
  const visibility = useMemo(
    () => Object.fromEntries(columns.map(({ hidden, id }) => [id, shown[id] ?? hidden !== true])),
    [columns, shown]
  )
  const table = useTable({
    features,
    columns: definitions,
    data: rows,
    getRowId: rowId,
    state: {
      columnVisibility: visibility,
      rowSelection: Object.fromEntries([...(selected ?? [])].map((id) => [id, true]))
    }
  })
  const visible = useMemo(() => columns.filter(({ id }) => visibility[id]), [columns, visibility])
  const items = table.getRowModel().rows

  const virtual = useVirtualizer({
    count: items.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowHeights[density],
    overscan: 12,
    enabled: !isNarrow && items.length > mostPlain
  })
  // biome-ignore lint/correctness/useExhaustiveDependencies: the rows have other heights
  useLayoutEffect(() => virtual.measure(), [density])
  const isVirtual = !isNarrow && items.length > mostPlain
  const places = isVirtual ? virtual.getVirtualItems() : items.map((_, index) => ({ index }))
  const before = isVirtual ? (virtual.getVirtualItems()[0]?.start ?? 0) : 0
  const after = isVirtual ? virtual.getTotalSize() - (virtual.getVirtualItems().at(-1)?.end ?? 0) : 0

  const toggle = (id: string) => {
    const next = new Set(selected)
    if (!next.delete(id)) next.add(id)
    onSelect?.(next)
  }

  const open = (index: number) => {
    const item = items[index]
    if (item !== undefined) props.onOpen?.(item.original)
  }
  const actions = useRef<RowActions>({ focus: setCurrent, toggle, open })
  useEffect(() => {
    actions.current = { focus: setCurrent, toggle, open }
  })
  const cells = useCallback(
    (index: number) =>
      visible.map((column, place) => (
        <td
          key={column.id}
          data-numeric={column.numeric || undefined}
          data-main={place === 0 || column.main || undefined}
          data-label={column.header}
          data-labelled={column.numeric || column.labelled || undefined}
          data-short={column.short || undefined}
          data-wide={column.wide || undefined}
          tabIndex={-1}
        >
          {items[index] !== undefined && column.cell(items[index].original)}
        </td>
      )),
    [visible, items]
  )

  const press = (event: KeyboardEvent<HTMLDivElement>) => {
    if (event.target instanceof HTMLInputElement || event.ctrlKey || event.metaKey || event.altKey) return
    // React hands on the keys of a dialog that a cell has opened
    if (!(event.target instanceof Node && event.currentTarget.contains(event.target))) return
    const row = rows[current]
    const { target } = event
    const cell = target instanceof HTMLElement ? cellOf(target) : undefined
    const move = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 }[event.key]
    if (move !== undefined) {
      const next = Math.max(0, Math.min(rows.length - 1, current + move))
      setCurrent(next)
      if (isVirtual) virtual.scrollToIndex(next)
      const line = scroller.current?.querySelector<HTMLTableRowElement>(`[data-index="${next}"]`)
      const below = target instanceof HTMLTableCellElement ? line?.cells[target.cellIndex] : undefined
      const reached = below ?? line
      reached?.focus()
    } else if (event.key === "ArrowRight" || event.key === "ArrowLeft") {
      if (!(target instanceof HTMLTableRowElement || target instanceof HTMLTableCellElement)) return
      beside(target, event.key === "ArrowRight" ? 1 : -1)?.focus()
    } else if (event.key === "c" && cell !== undefined) copyCell(cell)
    else if (event.key === "Enter" && row !== undefined && cell !== undefined && isOwn(target)) props.onOpen?.(row)
    else if (event.key === "x" && row !== undefined && onSelect !== undefined) toggle(rowId(row))
    else return
    event.preventDefault()
  }

  const query = list?.query
  return (
    <div className={styles.whole}>
      <div className={styles.toolbar}>
        <div className={styles.tools}>{toolbar}</div>
        <TableMenu
          name={name}
          rows={rows}
          list={list}
          columns={columns}
          visibility={visibility}
          onChange={(id, isShown) => setShown((before) => ({ ...before, [id]: isShown }))}
          density={density}
          onDensity={setDensity}
        />
      </div>
      {instead !== undefined ? (
        instead
      ) : rows.length === 0 && query?.isPending !== true ? (
        empty
      ) : (
        // biome-ignore lint/a11y/noStaticElementInteractions: the rows in it take the focus, and the keys move it
        <div
          ref={scroller}
          className={styles.scroller}
          data-virtual={isVirtual || undefined}
          data-dimmed={query?.isPlaceholderData === true || undefined}
          onKeyDown={press}
        >
          <table
            className={styles.table}
            data-density={density}
            aria-label={label}
            aria-rowcount={query?.hasNextPage ? -1 : rows.length + 1}
          >
            <thead>
              <tr>
                {onSelect !== undefined && (
                  <th scope="col" className={styles.select}>
                    <Checkbox
                      aria-label="Select all rows that are shown"
                      checked={rows.length > 0 && rows.every((row) => selected?.has(rowId(row)))}
                      onChange={({ currentTarget }) => onSelect(new Set(currentTarget.checked ? rows.map(rowId) : []))}
                    />
                  </th>
                )}
                {visible.map((column) => (
                  <HeaderCell key={column.id} column={column} sorting={props.sorting} />
                ))}
              </tr>
            </thead>
            <tbody>
              {before > 0 && <tr style={{ height: before }} />}
              {places.map(({ index }) => {
                const item = items[index]
                if (item === undefined) return null
                const { id } = item
                return (
                  <TableRow
                    key={id}
                    id={id}
                    index={index}
                    cells={cells}
                    actions={actions}
                    isCurrent={index === Math.max(0, current)}
                    isOpen={id === props.openId}
                    isLink={props.onOpen !== undefined}
                    isSelected={onSelect === undefined ? undefined : selected?.has(id) === true}
                  />
                )
              })}
              {after > 0 && <tr style={{ height: after }} />}
            </tbody>
          </table>
        </div>
      )}
      {instead === undefined && query !== undefined && <MorePages query={query} count={rows.length} />}
    </div>
  )
}

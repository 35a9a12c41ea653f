import { useMantineColorScheme } from "@mantine/core"
import {
  Background,
  Controls,
  type Edge,
  Handle,
  type Node,
  type NodeHandle,
  type NodeProps,
  Position,
  ReactFlow,
  ReactFlowProvider,
  type ReactFlowState,
  useReactFlow,
  useStore,
  useStoreApi
} from "@xyflow/react"
import { ForeignText } from "../foreign/ForeignText.tsx"
import { shownText } from "../foreign/marks.ts"
import "@xyflow/react/dist/style.css"
import { type KeyboardEvent, useEffect, useMemo } from "react"
import { type Area, areaOf, firstViewport, isWithin, partIn, widened } from "./area.ts"
import type { Drawn, DrawnEdge, FlowProps } from "./drawn.ts"
import styles from "./Flow.module.css"
import { type Places, placesOf, size } from "./layout.ts"

/** React Flow looks at all of its nodes at every move, so it gets only the part in view of a graph with more nodes. */
const mostAtOnce = 300
const leastZoom = { small: 0.02, large: 0.4 }

/** The directions of the arrow keys, as steps to the right and down. */
const directions: Readonly<Record<string, readonly [number, number]>> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1]
}
const stepPixels = 120

type StepNode = Node<{ readonly drawn: Drawn }, "step">

const FlowDrawing = (props: FlowProps) => (
  <ReactFlowProvider>
    <Flow {...props} />
  </ReactFlowProvider>
)

const Flow = ({ edges, label, nodes, onSelect, selection }: FlowProps) => {
  const { colorScheme } = useMantineColorScheme()
  const places = useMemo(() => placesOf(nodes, edges), [nodes, edges])
  const isLarge = nodes.length > mostAtOnce
  const { area } = useStore(inView, isStillDrawn)
  const store = useStoreApi()
  const { getViewport, setViewport, zoomTo } = useReactFlow()
  const moveByArrows = useArrowKeys()
  // a graph that grows while it is watched may be shown smaller than a large one can be
  useEffect(() => {
    if (isLarge && getViewport().zoom < leastZoom.large) void zoomTo(leastZoom.large)
  }, [isLarge, getViewport, zoomTo])
  const part = useMemo(
    () => (isLarge ? partIn(area, places, { nodes, edges }) : { nodes, edges }),
    [isLarge, area, places, nodes, edges]
  )
  const steps = useMemo(() => part.nodes.map((drawn) => stepOf(drawn, places, selection)), [part, places, selection])
  const lines = useMemo(() => part.edges.map(lineOf), [part])
  return (
    <ReactFlow
      nodes={steps}
      edges={lines}
      nodeTypes={nodeTypes}
      colorMode={colorScheme === "auto" ? "system" : colorScheme}
      onNodeClick={(_, { id }) => onSelect(id)}
      onNodesChange={(changes) => {
        // Enter and Space on a node
        for (const change of changes) if (change.type === "select" && change.selected) onSelect(change.id)
      }}
      onInit={() => {
        const chosen = nodes.find((drawn) => isChosen(drawn, selection))?.id
        void setViewport(firstViewport(places, store.getState(), chosen))
      }}
      onKeyDown={moveByArrows}
      tabIndex={0}
      minZoom={isLarge ? leastZoom.large : leastZoom.small}
      nodesDraggable={false}
      nodesConnectable={false}
      deleteKeyCode={null}
      onlyRenderVisibleElements
      aria-label={label}
    >
      <Background gap={22} />
      <Controls showInteractive={false} showFitView={!isLarge} />
    </ReactFlow>
  )
}

const useArrowKeys = () => {
  const { getViewport, setViewport } = useReactFlow()
  return (event: KeyboardEvent<HTMLDivElement>) => {
    const direction = directions[event.key]
    if (direction === undefined) return
    event.preventDefault()
    // the node that has the focus may go out of view, and the focus would be lost with it
    event.currentTarget.focus()
    const [right, down] = direction
    const { x, y, zoom } = getViewport()
    void setViewport({ x: x - right * stepPixels, y: y - down * stepPixels, zoom })
  }
}

interface InView {
  readonly visible: Area
  readonly area: Area
  readonly zoom: number
}

const inView = ({ height, transform: [x, y, zoom], width }: ReactFlowState): InView => {
  const visible = areaOf({ x, y, zoom }, { width, height })
  return { visible, area: widened(visible), zoom }
}

const isStillDrawn = (drawn: InView, now: InView): boolean =>
  isWithin(now.visible, drawn.area) && now.zoom < 2 * drawn.zoom

const isChosen = ({ id, parts }: Drawn, selection: string | undefined): boolean =>
  selection !== undefined && (id === selection || parts.includes(selection))

/** Known without looking at the drawn node. */
const handles: Array<NodeHandle> = [
  { type: "target", position: Position.Left, x: 0, y: size.height / 2 },
  { type: "source", position: Position.Right, x: size.width, y: size.height / 2 }
]

const stepOf = (drawn: Drawn, places: Places, selection: string | undefined): StepNode => ({
  id: drawn.id,
  type: "step",
  position: places.get(drawn.id) ?? { x: 0, y: 0 },
  data: { drawn },
  ...size,
  handles,
  selected: isChosen(drawn, selection),
  ariaLabel: shownText([drawn.fullTitle ?? drawn.title, ...drawn.lines].join(", "))
})

const lineOf = ({ id, isDashed, label, source, target }: DrawnEdge): Edge => ({
  id,
  source,
  target,
  focusable: false,
  ...(label !== "" && { label: shownText(label) }),
  ...(isDashed && { className: styles.dashed ?? "" })
})

const Step = ({ data: { drawn }, selected }: NodeProps<StepNode>) => (
  <div className={styles.step} data-meaning={drawn.meaning} data-selected={selected || undefined} style={size}>
    <Handle type="target" position={Position.Left} isConnectable={false} />
    <strong>
      <ForeignText title={drawn.fullTitle ?? drawn.title}>{drawn.title}</ForeignText>
    </strong>
    {drawn.lines.map((line) => (
      <span key={line}>
        <ForeignText title={line}>{line}</ForeignText>
      </span>
    ))}
    <Handle type="source" position={Position.Right} isConnectable={false} />
  </div>
)

const nodeTypes = { step: Step }

export default FlowDrawing

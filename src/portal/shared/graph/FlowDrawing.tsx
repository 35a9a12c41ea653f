import { useMantineColorScheme } from "@mantine/core"
import { Background, Controls, type Edge, Handle, type Node, type NodeProps, Position, ReactFlow } from "@xyflow/react"
import "@xyflow/react/dist/style.css"
import { useMemo } from "react"
import type { Drawn, FlowProps } from "./drawn.ts"
import styles from "./Flow.module.css"
import { placesOf, size } from "./layout.ts"

/** A graph that does not fit begins with what can be read. */
const leastReadable = 0.5

/** A larger graph shows only a part at once, because browsers are slow to move thousands of nodes. */
const mostAtOnce = 300

type StepNode = Node<{ readonly drawn: Drawn }, "step">

const FlowDrawing = ({ edges, label, nodes, onSelect, selection }: FlowProps) => {
  const { colorScheme } = useMantineColorScheme()
  const placed = useMemo(() => {
    const places = placesOf(nodes, edges)
    return nodes.map(
      (drawn): StepNode => ({
        id: drawn.id,
        type: "step",
        position: places.get(drawn.id) ?? { x: 0, y: 0 },
        data: { drawn },
        ...size,
        ariaLabel: [drawn.title, ...drawn.lines].join(", ")
      })
    )
  }, [nodes, edges])
  const shown = useMemo(
    () =>
      placed.map((node) =>
        node.id === selection || (selection !== undefined && node.data.drawn.parts.includes(selection))
          ? { ...node, selected: true }
          : node
      ),
    [placed, selection]
  )
  const lines = useMemo(
    () =>
      edges.map(
        ({ id, isDashed, label, source, target }): Edge => ({
          id,
          source,
          target,
          focusable: false,
          ...(label !== "" && { label }),
          ...(isDashed && { className: styles.dashed ?? "" })
        })
      ),
    [edges]
  )
  return (
    <ReactFlow
      nodes={shown}
      edges={lines}
      nodeTypes={nodeTypes}
      colorMode={colorScheme === "auto" ? "system" : colorScheme}
      onNodeClick={(_, { id }) => onSelect(id)}
      onNodesChange={(changes) => {
        // Enter and Space on a node
        for (const change of changes) if (change.type === "select" && change.selected) onSelect(change.id)
      }}
      fitView
      fitViewOptions={{ maxZoom: 1, minZoom: leastReadable }}
      minZoom={nodes.length > mostAtOnce ? leastReadable / 2 : 0.02}
      nodesDraggable={false}
      nodesConnectable={false}
      deleteKeyCode={null}
      onlyRenderVisibleElements
      aria-label={label}
    >
      <Background gap={22} />
      <Controls showInteractive={false} />
    </ReactFlow>
  )
}

const Step = ({ data: { drawn }, selected }: NodeProps<StepNode>) => (
  <div className={styles.step} data-meaning={drawn.meaning} data-selected={selected || undefined} style={size}>
    <Handle type="target" position={Position.Left} isConnectable={false} />
    <strong title={drawn.title}>
      <bdi>{drawn.title}</bdi>
    </strong>
    {drawn.lines.map((line) => (
      <span key={line} title={line}>
        <bdi>{line}</bdi>
      </span>
    ))}
    <Handle type="source" position={Position.Right} isConnectable={false} />
  </div>
)

const nodeTypes = { step: Step }

export default FlowDrawing

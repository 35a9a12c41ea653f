import { PageHeader } from "../../shared/page/PageHeader.tsx"

const BoardPage = () => <PageHeader title="Board" />

export default BoardPage

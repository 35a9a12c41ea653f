import { PageHeader } from "../../shared/page/PageHeader.tsx"

const MyModelsPage = () => <PageHeader title="Models" />

export default MyModelsPage
